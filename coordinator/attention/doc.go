// Package attention says what needs an operator's attention: clusters and zones that are
// down, checkers that are lost or not believed, and what else keeps hdsd from its work.
//
// Of derives items from facts, worst first. An item has a kind, what it is about, since
// when, a text, and the command to go on with. It has the same kind and labels for as long
// as it lasts, so that it can be followed from its start to its end.
//
// It is pure, and imports the standard library only.
package attention
