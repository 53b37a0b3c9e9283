// Package docs holds the Markdown files of the project to what there is: every
// link and anchor leads somewhere, every file, command and flag that is named
// exists, lines are short, and the commands of the guides run.
//
// A code block marked "console" is run. Each line after a "$ " prompt is one
// command, and has to succeed; one that ends with "&" runs until the end of the
// document. Each document gets a folder of its own with bin/hdsd and examples/,
// and a coordinator with the example configuration and three built-in checkers,
// unless it starts a coordinator itself. Blocks of any other kind are not run.
//
// The tests use no network but loopback. The package has no code of its own.
package docs
