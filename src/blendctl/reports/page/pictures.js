// Recorded pictures of an environment: the latest one of the present step, decoded when it is needed.
class PictureView {
  constructor(canvas, caption, onReady) {
    this.canvas = canvas;
    this.caption = caption;
    this.onReady = onReady;
    this.images = new Map(); // by episode and number
  }

  static at(episode, step) {
    const { steps } = episode.pictures;
    let index = 0;
    while (index + 1 < steps.length && steps[index + 1] <= step) index++;
    return index;
  }

  image(episode, index) {
    const key = `${episode.number}|${index}`;
    if (!this.images.has(key)) {
      const made = new Image();
      made.addEventListener("load", this.onReady);
      made.src = `data:image/webp;base64,${episode.pictures.sources[index]}`;
      this.images.set(key, made);
    }
    return this.images.get(key);
  }

  draw(episode, step) {
    const { canvas } = this;
    const { steps } = episode.pictures;
    const index = PictureView.at(episode, step);
    if (index + 1 < steps.length) this.image(episode, index + 1); // the next one is decoded meanwhile
    canvas.style.borderColor = `var(${colorName(episode.arm(step))})`;
    const shown = `${episode.number}|${index}`;
    const image = this.image(episode, index);
    if (!image.complete || !image.naturalWidth || canvas.dataset.shown === shown) return;
    canvas.dataset.shown = shown;
    Object.assign(canvas, { width: image.naturalWidth, height: image.naturalHeight });
    canvas.getContext("2d").drawImage(image, 0, 0);
    const every = steps.length > 1 ? Math.round((steps[steps.length - 1] - steps[0]) / (steps.length - 1)) : 0;
    setText(this.caption, every > 1 ? `Picture of step ${steps[index]}; there is one every ${every} steps.` : "");
  }
}
