document.addEventListener("click", (event) => address.follow(event));
addEventListener("hashchange", () => address.apply(true));
addEventListener("popstate", () => address.apply(false));
