// Before anything is painted: the colours that were chosen, so that no light page flashes in a dark room.
try {
  const theme = localStorage.getItem("listenwell.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // A browser that keeps nothing follows the system.
}
