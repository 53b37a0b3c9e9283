// Package export writes transitions and events as Parquet. It writes row group after row
// group, so that its memory does not grow with their number.
//
// Columns and their types are what other programs rely on: docs/reference/export.md lists
// them, and a test has another program read them.
package export
