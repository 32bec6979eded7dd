/** Light, dark, or as the system has it. */

const NAME = "listenwell.theme";

/**
 * Connects the switch.
 * @param {HTMLSelectElement} select - with the values "", light and dark
 */
export function connectTheme(select) {
  select.value = document.documentElement.dataset.theme ?? "";
  select.addEventListener("change", () => {
    const { dataset } = document.documentElement;
    if (select.value) dataset.theme = select.value;
    else delete dataset.theme;
    try {
      if (select.value) localStorage.setItem(NAME, select.value);
      else localStorage.removeItem(NAME);
    } catch {
      // It holds until the page is closed.
    }
  });
}
