// Package hostile runs a whole hdsd under input that nobody should send:
//   - bytes that are no protocol;
//   - messages that are too large;
//   - peers that never send or never read;
//   - reports of endpoints that hdsd never asked about;
//   - files that are traps.
//
// Under all of it, hdsd stays up, its memory stays bounded, and the health of other
// endpoints stays as it is.
package hostile
