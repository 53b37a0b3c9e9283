package main

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

// restToken stands for the first page of healthy items. No coordinator returns it.
const restToken = "\x00"

// worstFirst lists unhealthy items, the worst first, and then the rest. It takes two queries: an
// item that changes between them is listed once all the same.
func worstFirst[Item proto.Message](limit int, list func(unhealthy bool) lister[Item], key func(Item) string, worse func(a, b Item) int) lister[Item] {
	listed := map[string]bool{}
	var failed error
	return func(token string, size int32) ([]Item, string, error) {
		if token == "" {
			var unwell []Item
			unwell, failed = collect(list(true))
			if failed != nil && len(unwell) == 0 {
				return nil, "", failed
			}
			slices.SortStableFunc(unwell, worse)
			if limit > 0 {
				unwell = unwell[:min(limit, len(unwell))]
			}
			for _, item := range unwell {
				listed[key(item)] = true
			}
			return unwell, restToken, nil
		}
		if failed != nil {
			return nil, "", failed // behind what came before it
		}
		if token == restToken {
			token = ""
		}
		items, next, err := list(false)(token, size)
		return slices.DeleteFunc(items, func(i Item) bool { return listed[key(i)] }), next, err
	}
}

// collect returns all items of a list; with an error, those before it.
func collect[Item proto.Message](list lister[Item]) (collected []Item, err error) {
	for token := ""; ; {
		items, next, err := list(token, pageSize)
		collected = append(collected, items...)
		if token = next; err != nil || token == "" {
			return collected, err
		}
	}
}

// sorted lists all items of a list in an order, as one page.
func sorted[Item proto.Message](limit int, list lister[Item], order func(a, b Item) int) lister[Item] {
	return func(string, int32) ([]Item, string, error) {
		items, err := collect(list)
		if err != nil {
			return nil, "", err // the worst ones are not known
		}
		slices.SortStableFunc(items, order)
		if limit > 0 {
			items = items[:min(limit, len(items))]
		}
		return items, "", nil
	}
}
