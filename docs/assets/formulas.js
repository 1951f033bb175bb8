// Set every formula of the page. Arithmatex leaves \(...\) and \[...\] in elements of class "arithmatex".
for (const element of document.querySelectorAll(".arithmatex")) {
  const text = element.textContent.trim();
  katex.render(text.slice(2, -2), element, { displayMode: text.startsWith("\\["), throwOnError: false });
}
