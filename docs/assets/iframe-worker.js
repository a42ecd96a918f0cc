// The search of the site runs in a Worker, which browsers refuse to pages that are opened as files. There, a hidden
// frame takes its place: the same script, the same messages, nothing fetched from elsewhere.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.inside = frame.contentWindow;
    window.addEventListener("message", ({ source, data }) => {
      if (source === this.inside) this.dispatchEvent(new MessageEvent("message", { data }));
    });
    const page = this.inside.document;
    page.open();
    page.write(`<body><script>
      postMessage = (data) => parent.postMessage(data, "*");
      importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((loaded) => {
        const script = document.createElement("script");
        Object.assign(script, { src: url, onload: loaded });
        document.body.append(script);
      })), Promise.resolve());
    </script><script src="${url}"></script>`);
    page.close();
    this.ready = new Promise((loaded) => this.inside.addEventListener("load", loaded));
  }

  postMessage(data) {
    this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
  }
}
if (location.protocol === "file:") window.Worker = FrameWorker;
