// Bundles src into dist, with the licences of what is bundled. `make page` runs it.
import { build } from "esbuild";
import { readFileSync, writeFileSync, copyFileSync, mkdirSync } from "node:fs";

mkdirSync("dist", { recursive: true });
await build({
  entryPoints: { app: "src/main.js" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  outdir: "dist",
});
await build({ entryPoints: { app: "src/style.css" }, minify: true, outdir: "dist" });
copyFileSync("src/index.html", "dist/index.html");

const bundled = ["preact", "htm", "@tanstack/virtual-core"];
const texts = bundled.map((name) => {
  const about = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  return `${name} ${about.version} (${about.license})\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`;
});
writeFileSync("dist/licences.txt", texts.join(`\n${"-".repeat(80)}\n\n`));
