package main

import (
	"cmp"

	"google.golang.org/protobuf/proto"
)

const pageSize = 5000

// lister returns one page of a list.
type lister[Item proto.Message] func(token string, size int32) (items []Item, next string, err error)

// printAll shows the pages of a list up to its end, or up to limit items (0: all).
func printAll[Item proto.Message](p printer, limit int, list lister[Item], cells func(Item) []string) error {
	shown, token := 0, ""
	for {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-shown)
		}
		items, next, err := list(token, int32(size))
		if err != nil {
			if shown == 0 {
				return err
			}
			return cmp.Or(p.close(), err) // show the rows so far
		}
		for _, item := range items {
			if err := p.row(item, cells(item)); err != nil {
				return err
			}
		}
		shown, token = shown+len(items), next
		if token == "" || limit > 0 && shown >= limit {
			return p.close()
		}
	}
}
