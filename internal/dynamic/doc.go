// Package dynamic finds and replaces an Any by reflection. A message of a type without Go code
// (internal/envoytypes) holds dynamic messages, so that an Any in it is no *anypb.Any.
//
// It is pure, and knows no type but Any.
package dynamic
