// Package hostile runs a whole hdsd under input that nobody should send: bytes
// that are no protocol, messages that are too large, peers that say nothing or
// read nothing, lies about what was never asked, and files that are traps.
// Whatever it is, hdsd stays up, what it needs stays bounded, and what it says
// of an endpoint stays as it was.
package hostile
