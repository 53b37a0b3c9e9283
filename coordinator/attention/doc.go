// Package attention lists matters for an operator: clusters and zones that are down, checkers
// that are lost or not believed, and other obstacles to hdsd's work.
//
// Of derives items from facts, worst first. An item has a kind, a subject, a start, a text, and
// the command for the next step. It keeps its kind and labels while it lasts, so that it can be
// followed from its start to its end.
//
// It is pure, and imports health only.
package attention
