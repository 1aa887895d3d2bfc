#pragma once
/// The channels of images, each of which lies in as many pieces as there are images.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sim/ops/groups.h"

namespace sim {

/// The channels of an NCHW tensor: image n holds `pixels` contiguous elements of channel c.
struct Channels {
  std::size_t images, channels, pixels;

  explicit Channels(const Tensor& x)
      : images(x.shape()[0]), channels(x.shape()[1]), pixels(x.size() / (images * channels)) {}

  std::size_t size() const { return images * pixels; }
  std::size_t offset(std::size_t image, std::size_t channel) const {
    return (image * channels + channel) * pixels;
  }

  /// Channels that are gathered and scattered together: a piece of one image is long enough to be worth a
  /// call that converts it.
  std::size_t at_a_time() const { return std::clamp<std::size_t>(1024 / pixels, 1, channels); }

  /// Calls visit(out, first, count) for channels [first, first + count), on threads where that pays.
  template <class Visit>
  void for_each_block(const RoundedOutput& out, int threads, Visit visit) const {
    for_each_part_of_groups(out, channels, size(), threads,
                            [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
                              for (; first < last; first += at_a_time())
                                visit(part, first, std::min(at_a_time(), last - first));
                            });
  }

  /// `values` becomes `count` channels from `first` on, each image after image.
  template <class Real>
  void gather(const Tensor& x, std::size_t first, std::size_t count, std::vector<Real>& values) const {
    values.resize(count * size());
    std::vector<Real> buffer(count == 1 ? 0 : count * pixels);
    for (std::size_t image = 0; image < images; ++image) {
      const std::span<Real> plane = std::span(values).subspan(image * pixels, pixels);
      const Real* stored =
          read(x, offset(image, first), count * pixels, count == 1 ? plane : std::span(buffer));
      if (stored == plane.data()) continue;
      for (std::size_t c = 0; c < count; ++c)
        std::copy_n(stored + c * pixels, pixels, plane.data() + c * size());
    }
  }
  /// Channel number `index` of those gathered.
  template <class Real>
  std::span<Real> channel(std::vector<Real>& gathered, std::size_t index) const {
    return std::span(gathered).subspan(index * size(), size());
  }
  /// Calls fill(channel, where its plane is in what was gathered, where in the output) for every image.
  template <class Real, class Fill>
  void scatter(const RoundedOutput& out, std::size_t first, std::size_t count, Fill fill) const {
    std::vector<Real> buffer(count * pixels);
    for (std::size_t image = 0; image < images; ++image) {
      Real* const place = place_of<Real>(*out.tensor, offset(image, first), buffer);
      for (std::size_t c = 0; c < count; ++c)
        fill(first + c, c * size() + image * pixels, place + c * pixels);
      store(out, offset(image, first), std::span<const Real>(place, count * pixels));
    }
  }
};

}  // namespace sim
