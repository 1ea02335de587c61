// By the Book: an assistant that answers from this site's pages, in one script tag.
//
//   <script src="https://host/widget.js" data-site="TOKEN" async></script>
//
// The whole interface is in the shadow root of one element. Text is set only as text nodes. Answers arrive as HTML that
// the server has rendered and sanitised; the nodes are created one by one from a list of allowed tags, so that no string
// reaches the HTML parser of the browser. This works under any Content-Security-Policy that allows the script and its
// connection, and with Trusted Types.
(() => {
  "use strict";

  const NAME = "by-the-book";
  const PHONE = matchMedia("(max-width: 600px)");
  const EARLIER = 20; // conversations that are listed
  const MARGIN = 18; // pixels above a question that is scrolled to

  // ---------------------------------------------------------------------------------------------------- Languages

  const WORDS = {
    en: {
      code: "Copy code", share: "Copy a link to this question", shared: "Link copied", more: "You can also ask",
      here: "This page", earlier: "Earlier conversations", agree: "Agree",
      title: "Ask the book", open: "Ask the book", close: "Close", ask: "Ask", stop: "Stop", question: "Your question",
      hint: "Ask a question…", fresh: "New conversation", copy: "Copy", copied: "Copied", retry: "Try again",
      up: "Helpful", down: "Not helpful", why: "What was wrong?", send: "Send", thanks: "Thank you.", sources: "Sources",
      looking: "Looking in the book…", writing: "Writing…", slow: "Still at it. This takes a little longer than usual.",
      ready: "The answer is there.", stopped: "Stopped.", you: "You asked", book: "The book", about: "Ask about this",
      marked: "Marked text", only: "Only this text", boost: "With the whole book", drop: "Remove the marked text",
      offline: "You are offline. Your question is kept; try again when you are connected.",
      unreachable: "The book cannot be reached right now.", wait: "You can ask again in {t}.",
      hello: "What would you like to know?", busy: "Many are asking right now.", late: "The answer took too long.",
      rephrase: "This question could not be read. Please put it another way.", full: "This conversation has become too long.",
      unproven: "Sentences the book does not support: {n}",
      everywhere: "The whole book", where: "Look in", foot: "Answers come only from this book, each with its source.",
    },
    de: {
      code: "Code kopieren", share: "Link zu dieser Frage kopieren", shared: "Link kopiert", more: "Du kannst auch fragen",
      here: "Diese Seite", earlier: "Frühere Gespräche", agree: "Einverstanden",
      title: "Frag das Buch", open: "Frag das Buch", close: "Schließen", ask: "Fragen", stop: "Anhalten",
      question: "Deine Frage", hint: "Stell eine Frage…", fresh: "Neues Gespräch", copy: "Kopieren", copied: "Kopiert",
      retry: "Noch einmal", up: "Hilfreich", down: "Nicht hilfreich", why: "Was war falsch?", send: "Senden",
      thanks: "Danke.", sources: "Quellen", looking: "Sucht im Buch…", writing: "Schreibt…",
      slow: "Noch dabei. Es dauert etwas länger als sonst.", ready: "Die Antwort ist da.", stopped: "Angehalten.",
      you: "Du hast gefragt", book: "Das Buch", about: "Dazu fragen", marked: "Markierter Text",
      only: "Nur dieser Text", boost: "Mit dem ganzen Buch", drop: "Markierten Text entfernen",
      offline: "Du bist offline. Deine Frage bleibt stehen; versuch es wieder, wenn du verbunden bist.",
      unreachable: "Das Buch ist gerade nicht erreichbar.", wait: "In {t} kannst du wieder fragen.",
      hello: "Was möchtest du wissen?", busy: "Gerade fragen sehr viele.", late: "Die Antwort hat zu lange gedauert.",
      rephrase: "Diese Frage war nicht lesbar. Bitte formuliere sie anders.", full: "Dieses Gespräch ist zu lang geworden.",
      unproven: "Sätze, die das Buch nicht belegt: {n}",
      everywhere: "Das ganze Buch", where: "Suchen in", foot: "Antworten stammen nur aus diesem Buch, jede mit Quelle.",
    },
    fr: {
      code: "Copier le code", share: "Copier un lien vers cette question", shared: "Lien copié", more: "Vous pouvez aussi demander",
      here: "Cette page", earlier: "Conversations précédentes", agree: "Accepter",
      title: "Interroger le livre", open: "Interroger le livre", close: "Fermer", ask: "Demander", stop: "Arrêter",
      question: "Votre question", hint: "Posez une question…", fresh: "Nouvelle conversation", copy: "Copier",
      copied: "Copié", retry: "Réessayer", up: "Utile", down: "Pas utile", why: "Qu’est-ce qui n’allait pas ?",
      send: "Envoyer", thanks: "Merci.", sources: "Sources", looking: "Recherche dans le livre…", writing: "Rédaction…",
      slow: "Toujours en cours. C’est un peu plus long que d’habitude.", ready: "La réponse est là.",
      stopped: "Arrêté.", you: "Vous avez demandé", book: "Le livre", about: "Question sur ce texte",
      marked: "Texte sélectionné", only: "Ce texte seulement", boost: "Avec tout le livre",
      drop: "Retirer le texte sélectionné",
      offline: "Vous êtes hors ligne. Votre question est gardée ; réessayez une fois connecté.",
      unreachable: "Le livre est injoignable pour le moment.", wait: "Vous pourrez redemander dans {t}.",
      hello: "Que voulez-vous savoir ?", busy: "Beaucoup de questions arrivent en ce moment.", late: "La réponse a pris trop de temps.",
      rephrase: "Cette question n’a pas pu être lue. Formulez-la autrement.", full: "Cette conversation est devenue trop longue.",
      unproven: "Phrases que le livre ne confirme pas : {n}",
      everywhere: "Tout le livre", where: "Chercher dans",
      foot: "Les réponses viennent uniquement de ce livre, chacune avec sa source.",
    },
    es: {
      code: "Copiar el código", share: "Copiar un enlace a esta pregunta", shared: "Enlace copiado", more: "También puedes preguntar",
      here: "Esta página", earlier: "Conversaciones anteriores", agree: "Aceptar",
      title: "Pregunta al libro", open: "Pregunta al libro", close: "Cerrar", ask: "Preguntar", stop: "Detener",
      question: "Tu pregunta", hint: "Haz una pregunta…", fresh: "Nueva conversación", copy: "Copiar",
      copied: "Copiado", retry: "Reintentar", up: "Útil", down: "No es útil", why: "¿Qué estaba mal?", send: "Enviar",
      thanks: "Gracias.", sources: "Fuentes", looking: "Buscando en el libro…", writing: "Escribiendo…",
      slow: "Sigue en ello. Tarda un poco más de lo normal.", ready: "La respuesta está lista.", stopped: "Detenido.",
      you: "Preguntaste", book: "El libro", about: "Preguntar sobre esto", marked: "Texto seleccionado",
      only: "Solo este texto", boost: "Con todo el libro", drop: "Quitar el texto seleccionado",
      offline: "Estás sin conexión. Tu pregunta se conserva; inténtalo cuando vuelvas a conectarte.",
      unreachable: "No se puede acceder al libro ahora.", wait: "Puedes volver a preguntar en {t}.",
      hello: "¿Qué te gustaría saber?", busy: "Ahora mismo preguntan muchos.", late: "La respuesta ha tardado demasiado.",
      rephrase: "No se pudo leer esta pregunta. Formúlala de otra manera.", full: "Esta conversación es ya demasiado larga.",
      unproven: "Frases que el libro no respalda: {n}",
      everywhere: "Todo el libro", where: "Buscar en", foot: "Las respuestas salen solo de este libro, con su fuente.",
    },
    ar: {
      code: "نسخ الشيفرة", share: "نسخ رابط لهذا السؤال", shared: "تم نسخ الرابط", more: "يمكنك أيضاً أن تسأل",
      here: "هذه الصفحة", earlier: "محادثات سابقة", agree: "موافق",
      title: "اسأل الكتاب", open: "اسأل الكتاب", close: "إغلاق", ask: "اسأل", stop: "أوقف", question: "سؤالك",
      hint: "اطرح سؤالاً…", fresh: "محادثة جديدة", copy: "نسخ", copied: "تم النسخ", retry: "حاول مرة أخرى", up: "مفيد",
      down: "غير مفيد", why: "ما الخطأ؟", send: "إرسال", thanks: "شكراً.", sources: "المصادر",
      looking: "يبحث في الكتاب…", writing: "يكتب…", slow: "ما زال يعمل. يستغرق وقتاً أطول قليلاً من المعتاد.",
      ready: "الإجابة جاهزة.", stopped: "توقف.", you: "سألت", book: "الكتاب", about: "اسأل عن هذا",
      marked: "النص المحدد", only: "هذا النص فقط", boost: "مع الكتاب كله", drop: "أزل النص المحدد",
      offline: "أنت غير متصل. سؤالك محفوظ؛ حاول مرة أخرى عند الاتصال.", unreachable: "لا يمكن الوصول إلى الكتاب الآن.",
      hello: "ماذا تريد أن تعرف؟", busy: "كثيرون يسألون الآن.", late: "استغرقت الإجابة وقتاً طويلاً.",
      rephrase: "تعذرت قراءة السؤال. صغه بطريقة أخرى.", full: "أصبحت هذه المحادثة طويلة جداً.",
      wait: "يمكنك السؤال مجدداً بعد {t}.", unproven: "جمل لا يدعمها الكتاب: {n}",
      everywhere: "الكتاب كله", where: "ابحث في",
      foot: "الإجابات من هذا الكتاب وحده، ولكل منها مصدر.",
    },
  };
  const RIGHT_TO_LEFT = new Set(["ar", "fa", "he", "ur"]);

  // ------------------------------------------------------------------------------------------------------- Nodes

  /** Create an element with properties and children. Strings become text nodes, never HTML. */
  const el = (tag, properties = {}, ...inside) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (name in node && name !== "role") node[name] = value;
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...inside.filter((part) => part !== undefined && part !== null));
    return node;
  };

  const ICONS = {
    book: "M4 5.5A2.5 2.5 0 0 1 6.5 3H20v15H6.5A2.5 2.5 0 0 0 4 20.5zM4 20.5A2.5 2.5 0 0 0 6.5 23H20v-5M8.5 8h7M8.5 12h5",
    close: "M6 6l12 12M18 6L6 18", fresh: "M12 5v14M5 12h14", send: "M5 12h14M13 6l6 6-6 6", stop: "M6.5 6.5h11v11h-11z",
    share: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
    earlier: "M12 7v5l3 2M4 12a8 8 0 1 0 2.5-5.8M4 4v5h5",
    copy: "M9 9h11v11H9zM5 15H4V4h11v1", retry: "M4 12a8 8 0 1 0 2.5-5.8M4 4v5h5",
    up: "M7 11v9H4v-9zM7 11l4-8c1.5 0 2.5 1 2.2 2.8L12.5 9H19c1 0 1.8 1 1.5 2l-2 7.5c-.2.9-1 1.5-1.9 1.5H7",
    down: "M17 13V4h3v9zM17 13l-4 8c-1.5 0-2.5-1-2.2-2.8l.7-3.2H5c-1 0-1.8-1-1.5-2l2-7.5C5.7 4.6 6.5 4 7.4 4H17",
  };
  const icon = (name) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", ICONS[name]);
    svg.append(path);
    return svg;
  };

  /** A small icon button. Its name is a tooltip and an accessible label. */
  const button = (name, label, act) =>
    el("button", { type: "button", className: "small", title: label, "aria-label": label, onclick: act }, icon(name));

  const TAGS = new Set(
    "a blockquote br code em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul".split(" "),
  );
  const EMPTY = new Set(["br", "hr"]);
  const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0" };
  const TOKEN = /<(\/?)([a-z][a-z0-9]*)((?:\s+[a-z]+="[^"]*")*)\s*>|[^<]+|</g;
  const decode = (text) => text.replace(/&(amp|lt|gt|quot|nbsp);/g, (_, name) => ENTITIES[name]);

  /** The nodes of sanitised HTML from the server. Tags and attributes that are not on the list are removed again here. */
  const build = (html) => {
    const root = document.createDocumentFragment();
    const open = [root];
    for (const [text, slash, tag, attributes] of html.matchAll(TOKEN)) {
      const top = open[open.length - 1];
      if (!tag) top.append(decode(text));
      else if (!TAGS.has(tag)) continue;
      else if (slash) {
        if (open.length > 1 && top.localName === tag) open.pop();
      } else {
        const node = document.createElement(tag);
        for (const [, name, value] of attributes.matchAll(/([a-z]+)="([^"]*)"/g)) attribute(node, name, decode(value));
        top.append(node);
        if (!EMPTY.has(tag)) open.push(node);
      }
    }
    return root;
  };

  /** Replace child nodes. Equal nodes are kept, to avoid a new layout of a long answer with each word. */
  const graft = (home, old, fresh) => {
    let same = 0;
    while (same < old.length && same < fresh.length && old[same].isEqualNode(fresh[same])) same += 1;
    const [grown, now] = [old[same], fresh[same]];
    if (grown?.localName && now && grown.cloneNode().isEqualNode(now.cloneNode())) {
      graft(grown, [...grown.childNodes], [...now.childNodes]);
      same += 1;
    }
    for (const node of old.slice(same)) node.remove();
    home.append(...fresh.slice(same));
  };

  const attribute = (node, name, value) => {
    if (name === "href") lead(node, value);
    else if (name === "class" || name === "start" || name === "tabindex") node.setAttribute(name, value);
  };

  /** A link to the book: same site in the same tab, other sites in a new tab. Only http and https are allowed. */
  const lead = (node, url) => {
    if (!/^https?:\/\//i.test(url)) return node;
    node.href = url;
    if (new URL(url).origin !== location.origin) {
      node.target = "_blank";
      node.rel = "noopener";
    }
    return node;
  };

  const copy = async (text, near) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // The clipboard API requires a secure context.
      const aside = el("textarea", { className: "aside", value: text });
      near.append(aside);
      aside.select();
      document.execCommand("copy");
      aside.remove();
    }
  };

  // -------------------------------------------------------------------------------------------------- The server

  class Refused extends Error {
    constructor(response) {
      super(response.user_message || "");
      this.code = response.error || "";
      this.wait = Math.ceil(response.retry_after || 0);
    }
  }

  /** The client of the server's API, with the state that is stored in this browser. */
  class Book {
    constructor(base, site) {
      this.base = base;
      this.site = site;
      this.kept = {};
    }

    /** Without storage, as in a private window, the state is lost with the page. */
    recall(name) {
      try {
        return localStorage.getItem(this.key(name)) ?? this.kept[name] ?? null;
      } catch {
        return this.kept[name] ?? null;
      }
    }

    remember(name, value) {
      this.kept[name] = value;
      try {
        if (value === null) localStorage.removeItem(this.key(name));
        else localStorage.setItem(this.key(name), value);
      } catch {
        // The state is lost with the page.
      }
    }

    key(name) {
      return `${NAME}:${this.base}:${this.site}:${name}`;
    }

    /** A random id of this browser, which separates its conversations from those of other readers. */
    get reader() {
      if (!this.recall("reader")) {
        const bytes = Array.from(crypto.getRandomValues(new Uint8Array(16)));
        this.remember("reader", bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(""));
      }
      return this.recall("reader");
    }

    async call(method, path, { body, signal, headers } = {}) {
      const response = await fetch(this.base + path, {
        method, signal, mode: "cors", credentials: "omit", cache: "no-store",
        headers: {
          ...(body && { "Content-Type": "application/json" }),
          ...(this.site && { Authorization: `Bearer ${this.site}`, "X-Reader": this.reader }),
          Prefer: "render=html",
          ...headers,
        },
        body: body && JSON.stringify(body),
      });
      if (response.ok) return response;
      if (response.status === 403) console.warn(`By the Book: the token of this page is not for ${location.origin}. Create one with 'bythebook keys create --site ${location.origin}'.`);
      // A response of a proxy is not an ErrorResponse and has no message for readers.
      throw new Refused(await response.json().catch(() => ({})));
    }

    async session() {
      if (!this.recall("session")) {
        const made = await (await this.call("POST", "/v1/sessions", { body: {} })).json();
        this.remember("session", made.id);
      }
      return this.recall("session");
    }

    /** The URL at which a quote can be read: that of the published page, or the server's own view of it. */
    urlOf({ url, chunk_id, start, end }) {
      if (/^https?:/i.test(url)) return url;
      // With a site token, the server shows its pages only beside its own chat page.
      return this.site && this.base !== location.origin ? "" : `${this.base}/read/${chunk_id}?start=${start}&end=${end}#quote`;
    }

    /** The messages of the stored conversation. If the server has deleted it, its id is removed here as well. */
    async said() {
      const session = this.recall("session");
      if (!session) return [];
      try {
        const heard = await (await this.call("GET", `/v1/sessions/${session}/messages`)).json();
        return heard.messages.filter(({ role }) => role === "user" || role === "assistant");
      } catch (error) {
        if (error instanceof Refused) this.remember("session", null);
        return [];
      }
    }

    /** The events of a question. A broken stream is resumed once after the last event. */
    async *ask(question, signal) {
      let last;
      for (let tries = 0; tries < 2; tries += 1) {
        try {
          const headers = { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) };
          for await (const event of events(await this.call("POST", "/v1/ask", { body: question, signal, headers }))) {
            last = event.id;
            yield event;
            if (event.name === "answer" || event.name === "error") return;
          }
        } catch (error) {
          if (error instanceof Refused || error.name === "AbortError" || !last) throw error;
        }
      }
      throw new TypeError("the stream ended without an answer");
    }

    /** The page with this URL, if the book has it, and questions that the book answers. */
    async introduction(page) {
      const query = page ? `?page=${encodeURIComponent(page)}` : "";
      try {
        return await (await this.call("GET", `/v1/questions${query}`)).json();
      } catch {
        return { url: "", questions: [] };
      }
    }

    /** The conversations of this browser: their ids and first questions, newest first. */
    get earlier() {
      return JSON.parse(this.recall("earlier") || "[]");
    }

    note(id, question) {
      if (this.earlier.some((one) => one.id === id)) return;
      this.remember("earlier", JSON.stringify([{ id, question }, ...this.earlier].slice(0, EARLIER)));
    }

    async rate(answer, rating, reason) {
      await this.call("POST", "/v1/feedback", { body: { response_id: answer, rating, ...(reason && { reason }) } });
    }
  }

  /** The server-sent events of a response. */
  async function* events(response) {
    const lines = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = "";
    for (;;) {
      const { value, done } = await lines.read();
      if (done) return;
      held += value;
      const whole = held.split("\n\n");
      held = whole.pop();
      for (const block of whole) {
        const event = {};
        for (const line of block.split("\n")) {
          const at = line.indexOf(": ");
          if (at > 0) event[line.slice(0, at)] = line.slice(at + 2);
        }
        if (event.event) yield { id: event.id, name: event.event, data: JSON.parse(event.data) };
      }
    }
  }

  // ------------------------------------------------------------------------------------------------------ A turn

  const SLOW = 4000;

  /** The beginning of a quote, rendered by the server. */
  const preview = (citation) => el("q", { dir: "auto" }, build(citation.html));

  /** A duration as text: in seconds, minutes or hours. */
  const spell = (seconds, lang) => {
    const [size, unit] = [[3600, "hour"], [60, "minute"], [1, "second"]].find(([of]) => seconds >= of * 2 || of === 1);
    return new Intl.NumberFormat(lang, { style: "unit", unit, unitDisplay: "long" }).format(Math.ceil(seconds / size));
  };

  /** The view of one question and its answer. */
  class Turn {
    constructor(assistant, question, marked) {
      this.assistant = assistant;
      this.words = assistant.words;
      this.question = question;
      this.marked = marked;
      this.status = el("p", { className: "status" });
      this.answer = el("div", { className: "answer", dir: "auto" });
      this.below = el("div", { className: "below" });
      this.citations = new Map();
      this.coming = [];
      this.node = el(
        "article", { "aria-label": question },
        el(assistant.isPage ? "h2" : "h3", { className: "question" }, el("span", { className: "aside" }, `${this.words.you}: `), el("span", { dir: "auto" }, question)),
        marked && el("blockquote", { className: "marked", dir: "auto" }, marked.text),
        this.status, this.answer, this.below,
      );
      this.answer.addEventListener("mouseover", (event) => this.explain(event));
      this.answer.addEventListener("focusin", (event) => this.explain(event));
    }

    /** Ask, and show the events until the answer, a failure or a stop by the reader. */
    async ask() {
      const stop = new AbortController();
      this.stop = () => stop.abort();
      this.below.replaceChildren();
      this.answer.replaceChildren();
      this.answer.classList.remove("broken");
      this.wait(this.words.looking);
      this.node.setAttribute("aria-busy", "true");
      try {
        await this.listen(stop.signal);
      } catch (error) {
        this.fail(error);
      } finally {
        clearTimeout(this.slow);
        this.stop = undefined;
        this.node.removeAttribute("aria-busy");
      }
    }

    /** Follow the answer. If the server has deleted the conversation, start a new one, once. */
    async listen(signal, tries = 2) {
      const { book } = this.assistant;
      try {
        for await (const event of book.ask(await this.body(), signal)) {
          if (event.name === "delta") clearTimeout(this.slow);
          this.hear(event);
        }
      } catch (error) {
        if (error.code !== "not_found" || tries === 1) throw error;
        book.remember("session", null);
        await this.listen(signal, tries - 1);
      }
    }

    async body() {
      const { book, filters, resumed } = this.assistant;
      // Load the history before the question is sent, so that it does not contain the question.
      await resumed;
      const session = await book.session();
      book.note(session, this.question);
      return {
        query: this.question,
        session_id: session,
        ...(this.marked && { selected_text: this.marked.text, selection_mode: this.marked.mode }),
        ...(filters && { filters }),
      };
    }

    hear({ name, data }) {
      if (name === "state" && data.state === "generating") this.begin();
      else if (name === "delta") this.note(data);
      else if (name === "answer") this.conclude(data);
      else if (name === "error") throw new Refused(data);
    }

    /** Reset the answer: a broken stream can start again from the beginning. */
    begin() {
      this.wait(this.words.writing);
      this.coming = [];
      this.answer.replaceChildren();
    }

    /** Show the current state, and a message if it takes long. */
    wait(text) {
      this.say(text);
      clearTimeout(this.slow);
      this.slow = setTimeout(() => this.say(this.words.slow), SLOW);
    }

    /** Events between two animation frames are shown together: only the last update of each block is rendered. */
    note(delta) {
      this.coming = [...this.coming.filter(({ settled }) => settled < delta.settled), delta];
      this.assistant.redraw(this);
    }

    write() {
      for (const { settled, html } of this.coming) {
        graft(this.answer, [...this.answer.children].slice(settled), [...build(html).children]);
      }
      this.coming = [];
    }

    conclude({ id, answer, html, outcome, citations, sources, questions, metadata }) {
      this.coming = [];
      this.assistant.book.remember("asking", null);
      const sections = Object.fromEntries(sources.map((source) => [source.chunk_id, source.heading_hierarchy]));
      this.show({ id, text: answer, html, citations, sections, questions, removed: metadata?.removed });
      this.say("");
      this.assistant.tell(this.words.ready);
      this.assistant.emit("answer", { question: this.question, answer, outcome, citations });
      if (outcome === "answered") this.continue();
      else if (outcome === "refused") this.below.prepend(this.assistant.contacts("contacts"));
    }

    /** Below the answer, questions of the page that it cites, which the book answers. */
    async continue() {
      const [first] = this.citations.values();
      if (!first) return;
      const { assistant } = this;
      const found = await assistant.book.introduction(first.url.split("#")[0]);
      const asked = new Set([...assistant.thread.querySelectorAll("article")].map((turn) => turn.ariaLabel.toLowerCase()));
      const questions = found.url ? found.questions.filter((text) => !asked.has(text.toLowerCase())) : [];
      if (!questions.length || assistant.turn !== this || this.stop) return;
      assistant.thread.querySelector(".more")?.remove();
      this.below.append(el("div", { className: "more" }, el("p", {}, this.words.more), ...questions.map((text) => assistant.offered(text))));
      assistant.place(this.node);
    }

    /** Show a complete answer, new or from the history. */
    show({ id, text, html, citations, sections = {}, questions = [], removed = [] }) {
      this.id = id;
      this.text = text;
      this.citations = new Map(citations.map((citation) => [String(citation.number), citation]));
      this.answer.replaceChildren(build(html));
      for (const code of this.answer.querySelectorAll("pre")) this.addCopy(code);
      for (const mark of this.answer.querySelectorAll("span.cite")) this.link(mark);
      this.offer(questions);
      if (citations.length) this.below.append(this.listed(citations, sections));
      if (removed.length) this.below.append(this.rejected(removed));
      this.below.append(this.actions());
    }

    addCopy(code) {
      const text = code.textContent.trimEnd();
      const press = button("copy", this.words.code, async () => {
        await copy(text, this.below);
        this.said.textContent = this.words.copied;
      });
      const frame = el("div", { className: "code" }, press);
      code.replaceWith(frame);
      frame.prepend(code);
    }

    /** The number of a quote that no published page has leads to the server's own view of the page. */
    link(mark) {
      const citation = this.citations.get(mark.textContent);
      const url = citation && this.assistant.book.urlOf(citation);
      if (url) mark.replaceWith(lead(el("a", { className: "cite" }, mark.textContent), url));
    }

    /** Make the questions that an answer lists clickable: a click asks them. */
    offer(questions) {
      const items = [...this.answer.querySelectorAll("li")].slice(-questions.length || Infinity);
      items.forEach((item, at) => item.replaceChildren(this.assistant.offered(questions[at])));
    }

    /** What the model said and the book does not support, with the reasons: one line until it is opened. */
    rejected(sentences) {
      const items = sentences.map((sentence) => el("li", { dir: "auto" }, sentence));
      const summary = this.words.unproven.replace("{n}", sentences.length);
      return el("details", { className: "sources rejected" }, el("summary", {}, summary), el("ul", {}, ...items));
    }

    listed(citations, sections) {
      const items = citations.map((citation) => {
        const section = (sections[citation.chunk_id] || []).join(" › ");
        return el(
          "li", { value: citation.number },
          lead(el("a", { dir: "auto" }, citation.title), this.assistant.book.urlOf(citation)),
          section && section !== citation.title ? el("span", { className: "section", dir: "auto" }, section) : null,
          preview(citation),
        );
      });
      return el("details", { className: "sources", open: true }, el("summary", {}, this.words.sources), el("ol", {}, ...items));
    }

    actions() {
      const { words } = this;
      this.said = el("span", { className: "rated", role: "status" });
      this.thumbs = {
        up: button("up", words.up, () => this.rate("up")),
        down: button("down", words.down, () => this.complain()),
      };
      return el(
        "div", { className: "actions" },
        button("copy", words.copy, () => this.copy()),
        button("share", words.share, () => this.share()),
        button("retry", words.retry, () => this.assistant.again(this)),
        ...(this.id ? Object.values(this.thumbs) : []),
        this.said,
      );
    }

    async copy() {
      const lines = [...this.citations.values()].map((c) => `[${c.number}] ${c.title}: ${c.url}`);
      const text = [this.text, ...lines].join("\n");
      await copy(text, this.below);
      this.said.textContent = this.words.copied;
    }

    /** Copy the address of this page with the question, which is asked when it is opened. */
    async share() {
      const url = new URL(location.href.split("#")[0]);
      url.searchParams.set(this.assistant.isPage ? "q" : "ask", this.question);
      await copy(url.href, this.below);
      this.said.textContent = this.words.shared;
    }

    complain() {
      if (this.below.querySelector(".reason")) return;
      const reason = el("input", { maxLength: 1000, "aria-label": this.words.why, placeholder: this.words.why });
      const form = el("form", { className: "reason" }, reason, el("button", { className: "small wide" }, this.words.send));
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        form.remove();
        this.thumbs.down.focus();
        this.rate("down", reason.value.trim());
      });
      this.below.append(form);
      reason.focus();
    }

    async rate(rating, reason) {
      try {
        await this.assistant.book.rate(this.id, rating, reason);
        for (const [name, thumb] of Object.entries(this.thumbs)) thumb.setAttribute("aria-pressed", String(name === rating));
        this.said.textContent = this.words.thanks;
      } catch (error) {
        this.said.textContent = error.message || this.words.unreachable;
      }
    }

    fail(error) {
      this.write();
      this.answer.classList.add("broken");
      const stopped = error.name === "AbortError";
      this.say(stopped ? this.words.stopped : this.reason(error), !stopped);
      const { assistant, words } = this;
      if (stopped) assistant.book.remember("asking", null);
      const full = error.code === "context_overflow";
      const again = el("button", {
        type: "button", className: "small wide", onclick: () => (full ? assistant.restart() : assistant.again(this)),
      }, full ? words.fresh : words.retry);
      this.below.replaceChildren(el("div", { className: "again" }, again));
      if (error.wait) this.count(error.wait, again);
    }

    /** The error message, in the reader's language if it is translated. */
    reason(error) {
      const { words } = this;
      const ours = {
        rate_limit: words.busy, timeout: words.late, invalid_input: words.rephrase, context_overflow: words.full,
        unavailable: words.unreachable, api_error: words.unreachable, retrieval_error: words.unreachable,
      };
      if (error instanceof Refused) return ours[error.code] || error.message || words.unreachable;
      return navigator.onLine ? words.unreachable : words.offline;
    }

    /** Disable the retry button until `Retry-After` has passed, and show the countdown. */
    count(seconds, again) {
      const left = el("span", { className: "due" });
      again.after(left);
      const tick = () => {
        left.textContent = seconds > 0 ? this.words.wait.replace("{t}", spell(seconds, this.assistant.lang)) : "";
        again.disabled = seconds > 0;
        if (seconds > 0 && again.isConnected) setTimeout(tick, 1000);
        seconds -= 1;
      };
      tick();
    }

    say(text, alarming = false) {
      this.status.textContent = text;
      this.status.classList.toggle("error", alarming);
      if (text) this.assistant.tell(text);
    }

    explain(event) {
      const link = event.target.closest?.(".cite");
      const citation = link && this.citations.get(link.textContent);
      if (citation) this.assistant.hint(link, citation);
    }
  }

  // ------------------------------------------------------------------------------------------------ The assistant

  const editable = (node) => node?.isContentEditable || /^(input|textarea|select)$/i.test(node?.localName || "");

  /** Black or white, whichever has the higher contrast with this colour. */
  const ink = (colour) => {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
    const linear = [r, g, b].map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.18 ? "#000" : "#fff";
  };

  /** The theme of the site, if it declares one, as Docusaurus, MkDocs Material, Furo and others do. */
  const lighting = () => {
    for (const { dataset, classList } of [document.documentElement, document.body]) {
      const said = dataset.theme || dataset.mdColorScheme || (classList.contains("dark") ? "dark" : "");
      if (said === "light" || said === "default") return "light";
      if (said === "dark" || said === "slate") return "dark";
    }
    return "";
  };

  /** The shortcuts of the site's own search, which the widget must not share. */
  const taken = () => {
    if (document.querySelector(".DocSearch, .DocSearch-Button, .navbar__search-input")) return ["/", "ctrl+k"];
    if (document.querySelector("[data-md-component=search], .search-button, .sidebar-search, .pst-search-dialog")) return ["/"];
    return [];
  };

  class Assistant extends HTMLElement {
    /** Apply the options of the author (the attributes in the manual). Called once, before the element is shown. */
    configure(base, chosen) {
      const language = (chosen.lang || document.documentElement.lang || "en").toLowerCase().split("-")[0];
      this.words = WORDS[language] || WORDS.en;
      this.chosen = chosen;
      this.isPage = chosen.page !== undefined;
      this.book = new Book(base, chosen.site || "");
      this.questions = (chosen.questions || "").split("|").map((text) => text.trim()).filter(Boolean);
      this.sections = (chosen.sections || "").split("|").filter(Boolean);
      this.mode = this.isPage ? "page" : ["side", "inline"].includes(chosen.mode) ? chosen.mode : "bubble";
      this.links = (chosen.links || "").split("|").map((text) => text.trim().match(/^(.+?)\s*=\s*(https?:\S+|mailto:\S+)$/)).filter(Boolean);
      this.lang = this.words === WORDS[language] ? language : "en";
      this.dir = RIGHT_TO_LEFT.has(this.lang) ? "rtl" : "ltr";
    }

    connectedCallback() {
      if (this.shadowRoot) return;
      const root = this.attachShadow({ mode: "open" });
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(STYLE);
      root.adoptedStyleSheets = [sheet];
      this.dress();
      this.panel = this.drawn();
      this.tip = el("div", { className: "tip", role: "tooltip", id: "tip", hidden: true });
      this.live = el("div", { className: "aside", role: "status" });
      this.wrap = el("div", { className: `wrap ${this.isPage ? "page" : "widget"} ${this.mode}`, dir: this.dir, lang: this.lang });
      this.panel.append(this.tip);
      this.wrap.append(this.panel, this.live);
      root.append(this.wrap);
      root.addEventListener("keydown", (event) => this.key(event));
      // Keys typed here must not trigger shortcuts of the page, which cannot see that the target is a text field.
      for (const name of ["keydown", "keypress", "keyup"]) root.addEventListener(name, (event) => event.stopPropagation());
      root.addEventListener("click", (event) => this.leave(event));
      root.addEventListener("mouseout", () => this.unhint());
      root.addEventListener("focusout", () => this.unhint());
      addEventListener("keydown", (event) => this.shortcut(event), true);
      const shared = this.takeFromAddress();
      if (this.isPage) this.show();
      else if (this.mode === "inline") this.show(false);
      else this.float();
      if (!shared) return;
      this.show(false);
      this.ask(shared);
    }

    /** A panel that is always there, as opposed to one that the reader opens and closes. */
    get isFixed() {
      return this.isPage || this.mode === "inline";
    }

    /** The question of a shared address. It is asked once, in a new conversation. */
    takeFromAddress() {
      const url = new URL(location.href);
      const name = this.isPage ? "q" : "ask";
      const question = this.isFirst && url.searchParams.get(name)?.trim().slice(0, 1000);
      if (!question) return "";
      url.searchParams.delete(name);
      history.replaceState(history.state, "", url);
      this.book.remember("session", null);
      return question;
    }

    /** Events for the scripts of the page, such as `bythebook:answer`. */
    emit(name, detail = {}) {
      this.dispatchEvent(new CustomEvent(`bythebook:${name}`, { bubbles: true, detail }));
    }

    /** The author's own links, for example to people who can be asked. */
    contacts(className) {
      const links = this.links.map(([, name, url]) => {
        const link = el("a", { href: url }, name);
        return /^http/.test(url) ? lead(link, url) : link;
      });
      return links.length ? el("p", { className }, ...links) : "";
    }

    get isFirst() {
      return document.querySelector(NAME) === this;
    }

    dress() {
      const colour = /^#[0-9a-f]{6}$/i.test(this.chosen.color || "") ? this.chosen.color : "#1f5fbf";
      const style = new CSSStyleSheet();
      this.shadowRoot.adoptedStyleSheets.push(style);
      const paint = () => {
        const theme = ["light", "dark"].includes(this.chosen.theme) ? this.chosen.theme : (!this.isPage && lighting()) || "light dark";
        style.replaceSync(`.wrap { --accent: ${colour}; --on-accent: ${ink(colour)}; color-scheme: ${theme}; }`);
      };
      paint();
      if (this.isPage || this.chosen.theme) return;
      const watched = { attributes: true, attributeFilter: ["class", "data-theme", "data-md-color-scheme"] };
      const observer = new MutationObserver(paint);
      for (const node of [document.documentElement, document.body]) observer.observe(node, watched);
    }

    /** The button on the page, and what opens the panel: the button, a shortcut or selected text. */
    float() {
      this.wrap.classList.toggle("left", this.chosen.position === "left");
      const label = this.chosen.title || this.words.open;
      this.launcher = el("button", {
        type: "button", className: "launcher", "aria-label": label, title: label, "aria-expanded": "false",
        onclick: () => (this.panel.hidden ? this.show() : this.hide()),
      }, icon("book"));
      this.pick = el("button", { type: "button", className: "pick", hidden: true }, this.words.about);
      // Before the click clears the selection.
      this.pick.addEventListener("pointerdown", (event) => event.preventDefault());
      this.pick.addEventListener("click", () => this.take());
      this.panel.hidden = true;
      this.wrap.append(this.launcher, this.pick);
      document.addEventListener("selectionchange", () => {
        clearTimeout(this.marking);
        this.marking = setTimeout(() => this.offer(), 200);
      });
      addEventListener("scroll", () => this.pick.hidden || this.offer(), { passive: true, capture: true });
      if (this.book.recall("open") && !PHONE.matches) this.show(false);
    }

    drawn() {
      const { words, chosen } = this;
      this.thread = el("div", { className: "thread", tabIndex: 0, role: "region", "aria-label": words.book });
      // A reader who scrolls has taken over: the thread does not move until the next question.
      for (const name of ["wheel", "touchmove", "pointerdown", "keydown"]) {
        this.thread.addEventListener(name, () => { this.following = false; }, { passive: true });
      }
      this.input = el("textarea", { rows: 1, maxLength: 1000, placeholder: words.hint, "aria-label": words.question, dir: "auto" });
      this.input.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        this.submit();
      });
      this.go = el("button", { type: "submit", className: "ask", title: words.ask, "aria-label": words.ask }, icon("send"));
      this.chip = el("div", { className: "chip", hidden: true });
      this.form = el("form", {}, this.chip, el("div", { className: "box" }, this.input, this.go));
      this.form.addEventListener("submit", (event) => {
        event.preventDefault();
        this.submit();
      });
      this.scope = el("select", { "aria-label": words.where, hidden: true, onchange: () => this.narrow() });
      this.choices([["", words.everywhere], ...this.sections.map((name) => [JSON.stringify({ module: name }), name])]);
      const title = el(this.isPage ? "h1" : "h2", { id: "title", dir: "auto" }, chosen.title || words.title);
      return el(
        "section", { className: "panel", role: this.isPage ? "main" : this.mode === "inline" ? "region" : "dialog", "aria-labelledby": "title" },
        el(
          "header", {}, icon("book"), title, this.scope,
          button("earlier", words.earlier, () => this.list()),
          button("fresh", words.fresh, () => this.restart()),
          this.isFixed ? null : button("close", words.close, () => this.hide()),
        ),
        this.thread, this.form, el("p", { className: "foot" }, words.foot), this.contacts("foot"),
      );
    }

    /** The choice of a part of the book, shown if there is one. */
    choices(listed) {
      this.scope.append(...listed.map(([value, name]) => el("option", { value }, name)));
      this.scope.hidden = this.scope.options.length < 2;
    }

    narrow() {
      this.filters = this.scope.value ? JSON.parse(this.scope.value) : undefined;
    }

    show(focus = true) {
      const opens = this.panel.hidden || !this.resumed;
      this.panel.hidden = false;
      this.launcher?.setAttribute("aria-expanded", "true");
      if (!this.isFixed) {
        this.panel.setAttribute("aria-modal", String(PHONE.matches));
        this.book.remember("open", "1");
      }
      this.resumed ??= this.begin();
      if (focus) (this.form.hidden ? this.thread.querySelector("button") : this.input).focus();
      if (opens) this.emit("open");
    }

    /** Show the author's consent text until the reader agrees, then the conversation. */
    begin() {
      const { consent } = this.chosen;
      if (!consent || this.book.recall("agreed") === consent) return this.resume();
      this.form.hidden = true;
      return new Promise((done) => {
        const agree = () => {
          this.book.remember("agreed", consent);
          this.thread.querySelector(".consent").remove();
          this.form.hidden = false;
          this.input.focus();
          done(this.resume());
        };
        const press = el("button", { type: "button", className: "small wide", onclick: agree }, this.words.agree);
        this.thread.prepend(el("div", { className: "welcome consent" }, icon("book"), el("p", { dir: "auto" }, consent), press));
      });
    }

    /** On a phone the panel covers the page, including the target of a link: close it. */
    leave({ target }) {
      if (target.closest("a[href]")?.target === "" && PHONE.matches && !this.isFixed) this.hide();
    }

    hide() {
      this.panel.hidden = true;
      this.unhint();
      this.launcher.setAttribute("aria-expanded", "false");
      this.book.remember("open", null);
      this.launcher.focus();
      this.emit("close");
    }

    /** Show the stored conversation, or suggested questions. A question that was interrupted by leaving the page is kept. */
    async resume() {
      const said = await this.book.said();
      const earlier = [];
      for (const [at, message] of said.entries()) {
        if (message.role !== "assistant" || at === 0) continue;
        const turn = new Turn(this, said[at - 1].content);
        const { content, html, citations, metadata } = message;
        const { response_id: id, sections, questions, removed } = metadata;
        turn.show({ id, text: content, html, citations, sections, questions, removed });
        earlier.push(turn.node);
      }
      // Insert it before a question that was asked during loading.
      this.thread.prepend(...earlier);
      this.following = true;
      if (!earlier.length) this.suggest();
      else if (!this.turn) this.place(earlier.at(-1));
      if (!this.turn && !this.input.value) this.input.value = this.book.recall("asking") || "";
    }

    async suggest() {
      if (this.thread.childElementCount) return;
      const offers = el("div", { className: "offers" });
      this.thread.append(el("div", { className: "welcome" }, icon("book"), el("p", {}, this.words.hello), offers));
      await this.orient();
      offers.append(...this.questions.map((text) => this.offered(text)));
    }

    /** Once, what the book says about this page: whether it has it, and questions to begin with. */
    async orient() {
      if (this.isPage || this.oriented) return;
      this.oriented = true;
      const here = await this.book.introduction(location.href.split(/[?#]/)[0]);
      if (here.url) this.choices([[JSON.stringify({ url_prefix: here.url }), this.words.here]]);
      if (this.chosen.questions !== undefined) return;
      this.questions = here.questions.length ? here.questions : (await this.book.introduction("")).questions;
    }

    /** The conversations of this browser, to go on with one of them. */
    list() {
      if (this.form.hidden) return;
      this.turn?.stop?.();
      const offers = this.book.earlier.map(({ id, question }) => el("button", {
        type: "button", className: "offer", dir: "auto", onclick: () => {
          this.book.remember("session", id);
          this.thread.replaceChildren();
          this.resumed = this.resume();
          this.input.focus();
        },
      }, question));
      const heading = el("p", {}, this.words.earlier);
      this.thread.replaceChildren(el("div", { className: "welcome" }, icon("earlier"), heading, el("div", { className: "offers" }, ...offers)));
    }

    /** A question as a button that asks it. */
    offered(text) {
      return el("button", { type: "button", className: "offer", dir: "auto", onclick: () => this.ask(text) }, text);
    }

    submit() {
      if (this.turn?.stop) {
        this.turn.stop();
        return;
      }
      const question = this.input.value.trim();
      if (question) this.ask(question);
    }

    async ask(question) {
      if (this.turn?.stop) return;
      this.emit("question", { question });
      this.input.value = "";
      this.thread.querySelector(".welcome:not(.consent)")?.remove();
      this.thread.querySelector(".more")?.remove();
      const turn = new Turn(this, question, this.marked);
      this.unmark();
      this.thread.append(turn.node);
      await this.run(turn);
    }

    async again(turn) {
      if (this.turn?.stop) return;
      await this.run(turn);
    }

    async run(turn) {
      this.turn = turn;
      this.switch("stop", this.words.stop);
      this.following = true;
      this.place(turn.node);
      this.book.remember("asking", turn.question);
      await turn.ask();
      this.place(turn.node);
      this.switch("send", this.words.ask);
    }

    switch(name, label) {
      this.go.replaceChildren(icon(name));
      this.go.classList.toggle("stopping", name === "stop");
      this.go.title = label;
      this.go.setAttribute("aria-label", label);
    }

    restart() {
      if (this.form.hidden) return;
      this.turn?.stop?.();
      this.book.remember("session", null);
      this.book.remember("asking", null);
      this.thread.replaceChildren();
      this.suggest();
      this.input.focus();
    }

    /** Update the view of a turn in the next animation frame. */
    redraw(turn) {
      if (this.drawing) return;
      this.drawing = requestAnimationFrame(() => {
        this.drawing = undefined;
        turn.write();
        this.place(turn.node);
      });
    }

    /** Scroll to the end of a turn, but never beyond its question (the browser limits it to the end). A long answer is read from its top. */
    place(node) {
      if (this.following) this.thread.scrollTop = node.offsetTop - MARGIN;
    }

    /** Announce a message to screen readers. */
    tell(text) {
      this.live.textContent = text;
    }

    hint(link, citation) {
      const { tip } = this;
      tip.replaceChildren(el("strong", { dir: "auto" }, citation.title), preview(citation));
      tip.hidden = false;
      link.setAttribute("aria-describedby", "tip");
      const at = link.getBoundingClientRect();
      const wide = Math.min(tip.offsetWidth, innerWidth - 16);
      tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - wide - 8))}px`;
      tip.style.top = `${at.top - tip.offsetHeight - 6 > 0 ? at.top - tip.offsetHeight - 6 : at.bottom + 6}px`;
    }

    unhint() {
      this.tip.hidden = true;
    }

    // Shortcuts and selected text

    /** A shortcut configured by the author opens only the widget. The default shortcut yields to the site's own search. */
    shortcut(event) {
      if (event.defaultPrevented || event.altKey || event.shiftKey) return;
      const command = event.ctrlKey || event.metaKey;
      const pressed = command ? `ctrl+${event.key.toLowerCase()}` : event.key;
      const chosen = this.chosen.keys?.toLowerCase().split(/\s+/);
      const ours = chosen || ["/", "ctrl+k"].filter((key) => !taken().includes(key));
      if (!ours.includes(pressed) || (!command && editable(event.composedPath()[0]))) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      this.show();
    }

    key(event) {
      if (event.key === "Escape" && !this.tip.hidden) this.unhint();
      else if (event.key === "Escape" && !this.isFixed) this.hide();
      else if (event.key === "Tab" && !this.isFixed && PHONE.matches) this.wrapAround(event);
    }

    /** On a phone the panel covers the page, so the focus is kept inside it. */
    wrapAround(event) {
      const stops = [...this.panel.querySelectorAll("a[href], button:not(:disabled), textarea, input, select, summary, [tabindex='0']")].filter((stop) => stop.getClientRects().length);
      const edge = event.shiftKey ? stops[0] : stops[stops.length - 1];
      if (this.shadowRoot.activeElement !== edge) return;
      event.preventDefault();
      (event.shiftKey ? stops[stops.length - 1] : stops[0]).focus();
    }

    /** A button next to the selected text. With several widgets on a page, only the first one shows it. */
    offer() {
      const selection = document.getSelection();
      const text = selection?.toString().trim() || "";
      const usable = text.length > 2 && selection.rangeCount && !editable(document.activeElement) && this.isFirst;
      this.pick.hidden = !usable;
      if (!usable) return;
      const at = selection.getRangeAt(0).getBoundingClientRect();
      this.picked = text.slice(0, 5000);
      this.pick.style.left = `${Math.max(8, Math.min(at.left, innerWidth - this.pick.offsetWidth - 8))}px`;
      this.pick.style.top = `${Math.min(Math.max(8, at.bottom + 6), innerHeight - 44)}px`;
    }

    take() {
      this.pick.hidden = true;
      this.marked = { text: this.picked, mode: "boost" };
      const { words } = this;
      const mode = el("select", {
        "aria-label": words.marked,
        onchange: (event) => {
          this.marked = { ...this.marked, mode: event.target.value };
        },
      }, el("option", { value: "boost" }, words.boost), el("option", { value: "only" }, words.only));
      this.chip.replaceChildren(el("q", { dir: "auto" }, this.picked), mode, button("close", words.drop, () => this.unmark()));
      this.chip.hidden = false;
      this.show();
    }

    unmark() {
      this.marked = undefined;
      this.chip.hidden = true;
    }
  }

  // ------------------------------------------------------------------------------------------------------- Looks

  const STYLE = `
    :host { all: initial !important; display: block !important; position: static !important; }
    * { box-sizing: border-box; }
    [hidden] { display: none !important; }
    .wrap {
      --paper: light-dark(#fff, #15181d); --text: light-dark(#1a1e26, #e8eaee); --faint: light-dark(#596273, #a5aebd);
      --line: light-dark(#e1e5ec, #323944); --shade: light-dark(#f5f6f9, #1e232b); --link: light-dark(#1a4fa3, #93b9ff);
      --error: light-dark(#a3211a, #ff9d94); --edge: light-dark(#858e9e, #6c7686);
      --tint: light-dark(color-mix(in srgb, var(--accent) 11%, #fff), color-mix(in srgb, var(--accent) 32%, #15181d)); --mono: ui-monospace, "SF Mono", Menlo, Consolas, monospace;
      font: 15px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; color: var(--text); text-align: start;
    }
    button, input, select, textarea { font: inherit; color: inherit; margin: 0; }
    button { cursor: pointer; touch-action: manipulation; }
    button:disabled { cursor: default; opacity: 0.65; }
    :focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
    svg { width: 1.25em; height: 1.25em; fill: none; stroke: currentColor; stroke-width: 1.75; stroke-linecap: round; stroke-linejoin: round; display: block; flex: none; }
    .aside { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }

    .launcher, .pick { border: 0; background: var(--accent); color: var(--on-accent); box-shadow: 0 1px 2px #0003, 0 6px 20px #0004; z-index: 2147483000; position: fixed; }
    .launcher { inset-block-end: 20px; inset-inline-end: 20px; width: 56px; height: 56px; border-radius: 50%; display: grid; place-items: center; padding: 0; }
    .launcher:hover, .pick:hover, .ask:hover { filter: brightness(1.08); }
    .left .launcher { inset-inline: 20px auto; }
    .launcher svg { width: 26px; height: 26px; }
    .pick { padding: 7px 14px; border-radius: 99px; font-size: 14px; font-weight: 500; }

    /* Clipped, not hidden: the browser must not scroll the panel itself to what is focused in it. */
    .panel { display: flex; flex-direction: column; background: var(--paper); overflow: clip; }
    .widget .panel {
      position: fixed; inset-block-end: 88px; inset-inline-end: 20px; width: min(440px, calc(100vw - 40px));
      height: min(700px, calc(100dvh - 108px)); border: 1px solid var(--line); border-radius: 18px;
      box-shadow: 0 2px 6px #0001, 0 18px 60px #0004; z-index: 2147483001;
    }
    .left .panel { inset-inline: 20px auto; }
    .side .panel { inset-block: 0; inset-inline: auto 0; height: 100dvh; border-width: 0; border-inline-start-width: 1px; border-radius: 0; }
    .side.left .panel { inset-inline: 0 auto; border-inline-width: 0 1px; }
    .inline .panel { position: static; width: 100%; height: min(640px, 85vh); box-shadow: none; }
    .page { position: fixed; inset: 0; background: var(--paper); font-size: 16px; }
    .page .panel { height: 100%; }
    .page .panel > :not(.tip) { padding-inline: max(20px, calc(50% - 380px)); }

    header { display: flex; align-items: center; gap: 8px; padding-block: 10px; padding-inline: 18px 10px; border-block-end: 1px solid var(--line); min-height: 56px; }
    header > svg { color: light-dark(color-mix(in srgb, var(--accent) 80%, #000), color-mix(in srgb, var(--accent) 55%, #fff)); }
    h1, header h2 { font-size: 16px; font-weight: 650; letter-spacing: -0.01em; margin: 0; flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    h1 { font-size: 18px; }
    select { background: var(--paper); border: 1px solid var(--line); border-radius: 9px; padding: 4px 8px; max-width: 45%; min-height: 34px; font-size: 14px; text-overflow: ellipsis; }
    select:hover { border-color: var(--edge); }
    .small { border: 0; background: none; color: var(--faint); padding: 7px; border-radius: 9px; min-width: 34px; min-height: 34px; display: inline-grid; place-items: center; }
    .small:hover { background: var(--shade); color: var(--text); }
    .small.wide { border: 1px solid var(--line); background: var(--paper); color: var(--text); padding: 5px 14px; font-size: 14px; font-weight: 500; }
    .small.wide:hover:enabled { border-color: var(--edge); background: var(--shade); }
    .small[aria-pressed="true"] { color: var(--link); background: var(--shade); }

    .thread { position: relative; flex: 1; overflow-y: auto; overscroll-behavior: contain; scrollbar-width: thin; padding: 18px; min-height: 0; }
    .thread:focus-visible { outline-offset: -3px; }
    article { overflow-wrap: anywhere; }
    article + article { margin-block-start: 30px; }
    .question {
      font-size: 1em; font-weight: 500; line-height: 1.45; margin-block: 0 14px; margin-inline: auto 0; width: fit-content; max-width: 88%;
      background: var(--tint); padding: 9px 15px; border-radius: 16px; border-end-end-radius: 5px; white-space: pre-wrap;
    }
    .marked { font-size: 14px; max-height: 6em; overflow: auto; margin: 0 0 12px; }
    .status { margin: 0 0 8px; color: var(--faint); font-size: 14px; display: flex; align-items: center; gap: 9px; }
    .status:empty { display: none; }
    [aria-busy] .status::before { content: ""; width: 8px; height: 8px; border-radius: 50%; background: currentColor; flex: none; }
    .status.error { color: var(--error); background: color-mix(in srgb, var(--error) 8%, var(--paper)); padding: 10px 14px; border-radius: 12px; }
    .answer.broken { opacity: 0.75; }
    .answer > :first-child { margin-block-start: 0; }
    .answer p, .answer ul, .answer ol, .answer pre, .answer table, .answer blockquote { margin-block: 0 0.85em; }
    .answer ul, .answer ol { padding-inline-start: 1.4em; }
    .answer li { margin-block-end: 0.3em; }
    .answer li::marker { color: var(--faint); }
    .answer h3, .answer h4, .answer h5, .answer h6 { margin: 1.1em 0 0.4em; font-size: 1.05em; font-weight: 650; line-height: 1.35; }
    .answer pre { background: var(--shade); border: 1px solid var(--line); border-radius: 10px; padding: 11px 14px; overflow-x: auto; direction: ltr; text-align: left; scrollbar-width: thin; }
    .code { position: relative; margin-block: 0 0.85em; }
    .answer .code pre { margin: 0; padding-inline-end: 46px; }
    .code .small { position: absolute; inset-block-start: 5px; right: 5px; background: var(--shade); }
    .more { display: grid; gap: 6px; justify-items: start; margin-block-start: 8px; }
    .more p { margin: 0; font-size: 14px; color: var(--faint); }
    .more .offer { padding: 7px 13px; font-size: 14px; }
    .contacts, .foot { display: flex; flex-wrap: wrap; gap: 4px 14px; justify-content: center; }
    .contacts { justify-content: start; margin-block: 0 10px; }
    .answer hr { border: 0; border-block-start: 1px solid var(--line); margin-block: 1.2em; }
    code { font: 0.87em/1.55 var(--mono); }
    :not(pre) > code, .maths { background: var(--shade); border: 1px solid var(--line); border-radius: 5px; padding: 0.05em 0.32em; }
    .maths { font-family: var(--mono); font-size: 0.9em; white-space: pre-wrap; display: inline-block; max-width: 100%; }
    .answer table { border-collapse: collapse; display: block; overflow-x: auto; max-width: 100%; font-size: 0.94em; }
    th, td { border-block-end: 1px solid var(--line); padding-block: 6px; padding-inline: 0 14px; text-align: start; vertical-align: top; overflow-wrap: break-word; }
    th { font-weight: 600; color: var(--faint); }
    td.right, th.right { text-align: end; } td.center, th.center { text-align: center; }
    blockquote { margin-inline: 0; padding-inline-start: 14px; border-inline-start: 3px solid var(--line); color: var(--faint); }
    a { color: var(--link); text-underline-offset: 2px; text-decoration-thickness: 1px; }
    .cite {
      display: inline-block; min-width: 1.7em; padding: 0 0.4em; margin-inline: 1px; border-radius: 99px; background: var(--shade);
      border: 1px solid var(--line); color: var(--link); font: 600 0.74em/1.55 system-ui, sans-serif; text-align: center; text-decoration: none; vertical-align: 0.14em;
    }
    a.cite:hover { border-color: var(--link); background: var(--link); color: var(--paper); }

    .sources { font-size: 14px; line-height: 1.5; margin-block: 4px 6px; border: 1px solid var(--line); border-radius: 12px; }
    summary { cursor: pointer; color: var(--faint); padding: 8px 14px; font-weight: 500; border-radius: 12px; }
    summary:hover { color: var(--text); }
    .rejected ul { margin: 0; padding: 0 14px 4px; list-style: none; }
    .sources > ol { margin: 0; padding: 0 14px 4px; list-style: none; }
    .sources > ol > li { position: relative; padding-block: 10px; padding-inline-start: 34px; border-block-start: 1px solid var(--line); }
    .sources > ol > li::before {
      content: attr(value); position: absolute; inset-inline-start: 0; inset-block-start: 11px; min-width: 12px; padding: 0 5px; border-radius: 99px;
      background: var(--shade); border: 1px solid var(--line); font: 600 11px/20px system-ui, sans-serif; text-align: center; color: var(--faint);
    }
    .rejected li { padding-inline-start: 0; color: var(--faint); }
    .rejected li::before { content: none; }
    .sources a, .sources .name { font-weight: 550; text-decoration: none; }
    .sources a:hover { text-decoration: underline; }
    .section { display: block; color: var(--faint); font-size: 13px; }
    q { display: block; color: var(--faint); quotes: none; }
    q::before, q::after { content: none; }
    q p, q pre, q ul, q ol { margin: 0; } q pre { white-space: pre-wrap; overflow-wrap: anywhere; direction: ltr; text-align: left; } q ul, q ol { padding-inline-start: 1.4em; }
    .tip q { max-block-size: 9em; overflow: hidden; }
    .sources q { margin-block-start: 3px; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 4; overflow: hidden; }
    .actions { display: flex; align-items: center; gap: 2px; margin-inline-start: -7px; }
    .rated, .due { font-size: 14px; color: var(--faint); }
    .rated { margin-inline-start: 8px; }
    .again { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 12px; }
    .reason { display: flex; gap: 8px; padding: 6px 0; }
    .reason input { flex: 1; min-width: 0; padding: 5px 12px; border: 1px solid var(--edge); border-radius: 9px; background: var(--paper); }

    .welcome { display: flex; flex-direction: column; justify-content: safe center; min-height: 100%; gap: 16px; padding-block: 12px; }
    .welcome > svg { width: 40px; height: 40px; padding: 9px; border-radius: 12px; background: var(--tint); color: light-dark(color-mix(in srgb, var(--accent) 80%, #000), color-mix(in srgb, var(--accent) 55%, #fff)); }
    .welcome p { margin: 0; font-size: 1.35em; font-weight: 650; letter-spacing: -0.015em; line-height: 1.3; }
    .page .welcome p { font-size: 1.8em; }
    .welcome.consent p { font-size: 1em; font-weight: 400; letter-spacing: 0; white-space: pre-line; }
    .consent .wide { align-self: start; }
    .offers { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 260px), 1fr)); gap: 10px; }
    .offer { text-align: start; line-height: 1.45; background: var(--paper); border: 1px solid var(--line); border-radius: 13px; padding: 12px 15px; }
    .offer:hover { border-color: var(--edge); background: var(--shade); }

    .panel > form { padding: 10px 14px 8px; }
    .box { display: flex; gap: 6px; align-items: flex-end; padding: 5px; border: 1px solid var(--edge); border-radius: 16px; background: var(--paper); }
    .box:focus-within { border-color: var(--link); box-shadow: 0 0 0 3px color-mix(in srgb, var(--link) 22%, transparent); }
    textarea { flex: 1; min-width: 0; resize: none; field-sizing: content; min-height: 38px; max-height: 30vh; padding: 6px 10px; border: 0; background: none; line-height: 26px; }
    textarea:focus-visible { outline: none; }
    textarea::placeholder, input::placeholder { color: var(--faint); opacity: 1; }
    .stopping svg { fill: currentColor; }
    [dir="rtl"] .ask:not(.stopping) svg { transform: scaleX(-1); }
    .ask { flex: none; width: 38px; height: 38px; padding: 0; border: 0; border-radius: 12px; background: var(--accent); color: var(--on-accent); display: grid; place-items: center; }
    .chip { display: flex; align-items: center; gap: 6px; font-size: 14px; background: var(--shade); border-radius: 12px; padding-block: 4px; padding-inline: 14px 4px; margin-block-end: 8px; }
    .chip select { max-width: 60%; flex: none; }
    .chip q { flex: 1; min-width: 0; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
    .foot { margin: 0; padding: 0 18px 12px; font-size: 12px; line-height: 1.4; color: var(--faint); text-align: center; text-wrap: balance; }
    .tip {
      position: fixed; z-index: 2147483002; max-width: min(360px, calc(100vw - 16px)); background: var(--paper); color: var(--text);
      border: 1px solid var(--line); border-radius: 12px; padding: 10px 14px; font-size: 14px; line-height: 1.5; box-shadow: 0 2px 6px #0002, 0 10px 34px #0004; pointer-events: none;
    }
    .tip strong { font-weight: 600; display: block; margin-block-end: 2px; }
    pre [class^="k"], .ow { color: light-dark(#8a1f7a, #e39bd6); } pre [class^="s"], .gi { color: light-dark(#22672b, #9bd49f); }
    pre [class^="c"], .gp, .go { color: var(--faint); } pre [class^="c"] { font-style: italic; } .gd { color: var(--error); }
    .nf, .nc, .nn, .nt, .nb, .nd { color: light-dark(#1a4fa3, #93b9ff); } pre [class^="m"], .no, pre .kc { color: light-dark(#8a4a00, #e8b77a); }

    @media (max-width: 600px) {
      .widget:not(.inline) .panel { inset: 0; width: 100%; height: 100dvh; border: 0; border-radius: 0; }
      textarea, .reason input, select { font-size: 16px; }
      .page .panel > :not(.tip) { padding-inline: 14px; }
      .page .welcome p { font-size: 1.4em; }
    }
    @media (max-height: 400px) {
      .foot { display: none; }
      .page header, .widget header { min-height: 0; padding-block: 2px; }
      .panel > form { padding-block: 4px; }
      .thread { padding-block: 8px; }
    }
    @media (prefers-reduced-motion: no-preference) {
      .widget:not(.inline) .panel { animation: rise 0.2s cubic-bezier(0.2, 0.8, 0.3, 1); }
      [aria-busy] .status::before { animation: beat 1.2s ease-in-out infinite; }
      .launcher, .offer, .small, .ask, .box, .cite { transition: background 0.12s, border-color 0.12s, filter 0.12s, box-shadow 0.12s; }
      @keyframes rise { from { opacity: 0; transform: translateY(14px) scale(0.985); } }
      @keyframes beat { 50% { opacity: 0.25; transform: scale(0.7); } }
    }
    @media (forced-colors: active) { .launcher, .ask, .cite { border: 1px solid; } .box:focus-within { outline: 2px solid; } }
    @media print { .wrap.widget { display: none; } }
  `;

  // ------------------------------------------------------------------------------------------------------- Begin

  if (!customElements.get(NAME)) customElements.define(NAME, Assistant);
  // document.currentScript is null in a module.
  const script = document.currentScript || document.querySelector("script[src*='/widget.js']");
  const base = new URL(script.src).href.replace(/\/widget\.js.*$/, "");
  const site = script.dataset.site || "";
  const begin = () => {
    const there = [...document.querySelectorAll(NAME)];
    if (there.some(({ book }) => book?.base === base && book?.site === site)) return;
    const assistant = document.createElement(NAME);
    assistant.configure(base, { ...script.dataset });
    const { page, into } = script.dataset;
    const inside = page !== undefined ? document.body : into && document.querySelector(into);
    // Not in the body, whose content single-page sites replace on navigation.
    (inside || document.documentElement).append(assistant);
    window.ByTheBook ??= {
      open: () => assistant.show(),
      close: () => assistant.isFixed || assistant.hide(),
      ask: (question) => {
        assistant.show();
        return assistant.ask(String(question).trim().slice(0, 1000));
      },
      on: (name, act) => document.addEventListener(`bythebook:${name}`, (event) => act(event.detail)),
    };
    assistant.emit("ready");
  };
  if (document.body) begin();
  else document.addEventListener("DOMContentLoaded", begin);
})();
