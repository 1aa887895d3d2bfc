/// A training in FP32 and one in FP16 of the same network, on the same batches, and the course of loss scaling that the second
/// follows: from which step on it has which scaler.

const POLICIES = { wide: "fp32", narrow: "amp" };
const SPECS = { none: () => "none", static: (log2) => `static:scale=${2 ** log2}`, dynamic: () => "dynamic:growth_interval=20",
  adaptive: () => "adaptive" };

/// "0:none,150:static.10" as [{ step, scaler }, ...] in ascending order from step 0; null where it is no such text.
export function readCourse(text) {
  const parts = text.split(",").map((part) => /^(\d{1,4}):(none|dynamic|adaptive|static\.(?:[12]?\d|30))$/.exec(part));
  if (parts.includes(null)) return null;
  const course = parts.map(([, step, scaler]) => ({ step: Number(step), scaler }));
  return course[0].step === 0 && course.every(({ step }, i) => i === 0 || step > course[i - 1].step) ? course : null;
}

export function courseText(course) {
  return course.map(({ step, scaler }) => `${step}:${scaler}`).join(",");
}

export function scalerAt(course, step) {
  return course.findLast((part) => part.step <= step).scaler;
}

/// The course with another scaler from a step on.
export function withScaler(course, step, scaler) {
  const before = course.filter((part) => part.step < step);
  return before.length > 0 && before.at(-1).scaler === scaler ? before : [...before, { step, scaler }];
}

/// As the library names it.
function spec(scaler) {
  const [name, log2] = scaler.split(".");
  return SPECS[name](log2);
}

export class TrainingPair {
  constructor(module, network, seed) {
    Object.assign(this, { module, network, seed });
    this.wide = this.begin(POLICIES.wide, "none");
  }

  begin(policy, scaler) {
    return { number: this.module.begin(this.network, policy, spec(scaler), this.seed), scaler, made: 0, steps: [] };
  }

  end() {
    for (const training of [this.wide, this.narrow]) if (training) this.module.end(training.number);
  }

  /// Sets the course. What was trained stays, as far as it followed this course, too.
  follow(course) {
    this.course = course;
    this.narrow ??= this.begin(POLICIES.narrow, scalerAt(course, 0));
    const other = this.narrow.steps.findIndex(({ scaler }, step) => scaler !== scalerAt(course, step));
    if (other >= 0) this.rewind(other);
  }

  /// Forgets what FP16 made from this step on. Those before it are made again, unseen, when one is wanted that is not there.
  rewind(step) {
    const steps = this.narrow.steps.slice(0, step);
    if (this.narrow.made > step) {
      this.module.end(this.narrow.number);
      this.narrow = this.begin(POLICIES.narrow, scalerAt(this.course, 0));
    }
    this.narrow.steps = steps;
  }

  /// S that such a scaler begins with.
  firstScale(scaler) {
    return this.module.firstScale(spec(scaler));
  }

  /// Steps that both have made.
  get done() {
    return Math.min(this.wide.steps.length, this.narrow.steps.length);
  }

  /// One step of the training that is behind.
  advance() {
    const { wide, narrow } = this;
    if (narrow.steps.length > wide.steps.length) return this.step(wide);
    const scaler = scalerAt(this.course, narrow.made);
    if (scaler !== narrow.scaler) this.module.replaceScaler(narrow.number, spec(scaler));
    narrow.scaler = scaler;
    return this.step(narrow);
  }

  step(training) {
    const start = performance.now();
    const { loss, scale, next_scale, decision, gradients } = this.module.step(training.number);
    const layers = gradients.filter(({ name }) => name.endsWith(".weight")).map(({ name, values, zero }) =>
      ({ name: name.replace(/\.weight$/, ""), zero: zero / values }));
    performance.measure(training === this.wide ? "FP32 step" : "FP16 step", { start });
    const step = { scaler: training.scaler, loss, scale, next: next_scale, skipped: decision !== "apply", layers };
    training.steps[training.made++] = step;
  }
}
