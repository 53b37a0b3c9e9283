// Package printable keeps what others have named from doing anything where it is shown.
//
// Names, versions, localities and reasons come from clients and from sources. In them, a
// control character can move a terminal's cursor, a bidirectional one can turn the text
// around it, and a spreadsheet takes a cell that begins with "=" for a formula. Is says
// whether a text has none of the first two; who connects is refused otherwise. Text, Lines,
// Cell and JSON write a text for an output, and every output of hdsd uses one of them.
//
// It is pure, and imports the standard library.
package printable
