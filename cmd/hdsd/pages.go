package main

import (
	"cmp"

	"google.golang.org/protobuf/proto"
)

const pageSize = 5000

// lister gives one page of a list.
type lister[Item proto.Message] func(token string, size int32) (items []Item, next string, err error)

// printAll shows the pages of a list until it ends or limit (0: none) items
// were shown.
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
			return cmp.Or(p.close(), err) // what has come is shown
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
