#include "experiments/report/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string_view>

#include "experiments/frame/whole_file.h"
#include "experiments/report/html.h"
#include "experiments/report/page.h"

namespace experiments::report {
namespace {

namespace fs = std::filesystem;

std::string page_name(const RunDirectory& run) {
  return run.directory + ".html";
}

std::string link(const fs::path& target, std::string_view text) {
  return fmt::format("<a href=\"{}\">{}</a>", percent_encoded(target.generic_string()), typeset(text));
}

/// Links in the site are relative, so that the whole folder can be moved.
class SiteWriter {
 public:
  explicit SiteWriter(const Site& site)
      : site_(site), folder_(fs::weakly_canonical(fs::absolute(site.index).parent_path())) {
    check_names();
  }

  void write() const {
    for (std::size_t i = 0; i < site_.runs.size(); ++i) {
      const RunDirectory& run = site_.runs[i];
      write_file(folder_ / page_name(run), document(run.directory, run_page(i)));
    }
    write_file(site_.index, document(site_.title, index_page()));
  }

 private:
  void check_names() const {
    std::set<std::string> names{site_.index.filename().string()};
    for (const RunDirectory& run : site_.runs) {
      if (!names.insert(page_name(run)).second) {
        throw std::runtime_error(fmt::format(
            "run directory '{}': the site has a page '{}' already; the last names of directories must differ",
            run.path.string(), page_name(run)));
      }
    }
  }

  fs::path from_here(const fs::path& target) const {
    return fs::weakly_canonical(target).lexically_relative(folder_);
  }

  std::string run_page(std::size_t i) const {
    const RunDirectory& run = site_.runs[i];
    std::string navigation = link(site_.index.filename(), "all questions");
    if (i > 0) navigation += neighbour("previous", site_.runs[i - 1]);
    if (i + 1 < site_.runs.size()) navigation += neighbour("next", site_.runs[i + 1]);
    std::string files;
    for (const std::string& file : run.files)
      files += fmt::format("{}\n", link(from_here(run.path) / file, file));
    int figure_number = 0;
    return fmt::format("<nav>{}</nav>\n{}<h3>Files</h3>\n<nav>{}</nav>\n{}{}", navigation,
                       run_section(run, figure_number), files, folded("All key figures", summary_table(run)),
                       provenance(run));
  }

  static std::string neighbour(std::string_view which, const RunDirectory& run) {
    return fmt::format("\n{}", link(page_name(run), fmt::format("{}: {}", which, run.directory)));
  }

  std::string index_page() const {
    std::string html = fmt::format("<h1>{}</h1>\n", escaped(site_.title));
    for (const RunDirectory& run : site_.runs) html += answer(run);
    if (!site_.notebooks.empty()) html += "<h2>Notebooks</h2>\n<ul>\n" + notebook_list() + "</ul>\n";
    return html;
  }

  std::string answer(const RunDirectory& run) const {
    return fmt::format(
        "<section class=\"answer\">\n<div>{}</div>\n<div><h2>{}</h2>\n<div class=\"name\">{}</div>\n"
        "<p>{}</p></div>\n</section>\n",
        thumbnail(run), link(page_name(run), run.question), escaped(run.directory), typeset(headline(run)));
  }

  std::string thumbnail(const RunDirectory& run) const {
    const auto drawn =
        std::ranges::find_if(run.figures, [](const auto& figure) { return !figure.svg.empty(); });
    if (drawn == run.figures.end()) return "";
    const fs::path picture = (from_here(run.path) / drawn->script).replace_extension(".svg");
    return fmt::format("<a href=\"{}\"><img src=\"{}\" alt=\"{}\" loading=\"lazy\"></a>",
                       percent_encoded(page_name(run)), percent_encoded(picture.generic_string()),
                       escaped(drawn->title));
  }

  std::string notebook_list() const {
    std::string items;
    for (const fs::path& notebook : site_.notebooks) {
      std::string title = notebook.stem().string();
      std::ranges::replace(title, '_', ' ');
      items += fmt::format("<li>{}</li>\n", link(from_here(notebook), title));
    }
    return items;
  }

  const Site& site_;
  fs::path folder_;
};

}  // namespace

void write_site(const Site& site) {
  SiteWriter(site).write();
}

}  // namespace experiments::report
