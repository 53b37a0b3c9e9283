package main

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

// restToken stands for the first page of those that are well. No coordinator gives it.
const restToken = "\x00"

// worstFirst lists what is not well, the worst first, and then the rest. It takes two
// questions: what becomes well or unwell between them is listed once all the same.
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

// collect gives all items of a list; with an error, those before it.
func collect[Item proto.Message](list lister[Item]) (all []Item, err error) {
	for token := ""; ; {
		items, next, err := list(token, pageSize)
		all = append(all, items...)
		if token = next; err != nil || token == "" {
			return all, err
		}
	}
}

// sorted lists all items of a list in an order, as one page.
func sorted[Item proto.Message](limit int, list lister[Item], order func(a, b Item) int) lister[Item] {
	return func(string, int32) ([]Item, string, error) {
		all, err := collect(list)
		if err != nil {
			return nil, "", err // what is worst is not known
		}
		slices.SortStableFunc(all, order)
		if limit > 0 {
			all = all[:min(limit, len(all))]
		}
		return all, "", nil
	}
}
