/// Ten questions whose numbers are drawn anew; a wrong answer leads to the state of the page that shows why.

import { element, isWhole } from "../elements.js";

export const name = "quiz";
/// answers: the place of the choice for each question, "-" where there is none yet.
export const defaults = { seed: "1", answers: "----------" };

export function allowed(parameter, value) {
  return parameter === "seed" ? isWhole(value, 0, 2 ** 32 - 1) : /^[-0-9]{10}$/.test(value);
}

export function show(engine, state, texts, go) {
  const questions = engine.quiz(Number(state.seed)), answers = [...state.answers];
  const answered = questions.filter((_, i) => answers[i] !== "-").length;
  const right = questions.filter((question, i) => answers[i] === String(question.right)).length;
  const anew = () => go({ seed: String((Number(state.seed) + 1) % 2 ** 32), answers: defaults.answers });
  return element("div", {}, element("ol", { class: "quiz" }, ...questions.map((question, i) => element("li", {},
    one(question, i, answers[i], state, texts, (choice) =>
      go({ answers: answers.map((before, at) => at === i ? String(choice) : before).join("") }))))),
  element("p", { class: "answer", "aria-live": "polite" }, texts(answered > 0 ? "quiz.score" : "quiz.unanswered", { right, answered, all: questions.length })),
  element("div", { class: "buttons" }, element("button", { onclick: anew }, texts("quiz.anew"))));
}

function one(question, i, answer, state, texts, choose) {
  const isAnswered = answer !== "-", isRight = answer === String(question.right);
  const choices = question.choices.map((choice, place) => {
    const mark = !isAnswered ? "" : place === question.right ? "right" : String(place) === answer ? "mistaken" : "";
    return element("button", { class: mark, disabled: isAnswered, "aria-pressed": String(String(place) === answer),
      onclick: () => choose(place) },
      choice === "=" ? texts("quiz.equal") : choice);
  });
  return element("fieldset", {}, element("legend", {}, `${i + 1}. ${texts(`quiz.${question.kind}`, question.values)}`),
    element("div", { class: "buttons" }, ...choices),
    element("p", { class: "verdict", "aria-live": "polite" }, ...(isAnswered ? verdict(question, isRight, state, texts) : [])));
}

function verdict(question, isRight, state, texts) {
  const right = question.choices[question.right];
  return [isRight ? texts("quiz.right") : texts("quiz.wrong", { right: right === "=" ? texts("quiz.equal") : right }), " ",
    element("a", { href: `${question.why}&language=${state.language}` }, texts("quiz.why"))];
}
