const tip = document.getElementById("tip");
for (const button of document.querySelectorAll("[data-switch]"))
  button.addEventListener("click", () => {
    const isOn = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", isOn);
    for (const part of button.closest("figure").querySelectorAll(`[data-part="${button.dataset.switch}"]`))
      part.classList.toggle("off", !isOn);
  });
for (const figure of document.querySelectorAll("figure[data-tips]"))
  for (const [name, texts] of Object.entries(JSON.parse(figure.dataset.tips))) {
    const groups = [...figure.querySelectorAll(`[data-part="${name}"]`)];
    const dots = groups.map(group => [...group.querySelectorAll("use")]).find(found => found.length === texts.length);
    const marks = dots || (groups.length === texts.length ? groups : []);
    marks.forEach((mark, number) => {
      mark.addEventListener("mousemove", event => {
        tip.textContent = texts[number];
        tip.style.display = "block";
        tip.style.left = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8) + "px";
        tip.style.top = event.clientY + 14 + "px";
      });
      mark.addEventListener("mouseleave", () => { tip.style.display = "none"; });
    });
  }
