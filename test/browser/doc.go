// Package browser tests the page in a real Chromium. It is a module of its own, since what
// drives the browser is large. axe-core, which looks for what people cannot read or reach,
// comes from npm.
package browser
