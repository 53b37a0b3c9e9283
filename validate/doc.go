// Package validate finds what is wrong with the clusters of a configuration
// before hdsd serves it: what would not be checked or published, and what works
// but is probably a mistake.
//
// It owns the search and its warnings. The rules themselves are those that a
// coordinator applies (packages source, catalog and envoy/specifier),
// so that both agree. Validation goes further than a start in one way: it also
// looks at what it can read of a resource that is already known to be bad.
//
// The package has no state. Examine reads files. It contacts management
// servers if it is to; the goroutines of that end before it returns.
package validate
