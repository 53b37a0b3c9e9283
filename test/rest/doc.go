// Package rest holds what hdsd serves over HTTP against the OpenAPI document
// that it serves itself, and against what programs outside rely on.
//
// The document is taken strictly: a field, parameter, status or kind of event
// that it does not name fails a test. The coordinator that is asked runs
// inside the test, with built-in checkers; the package api asks here, too,
// about what only its fakes can bring about. It may import anything.
package rest
