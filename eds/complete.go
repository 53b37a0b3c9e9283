package eds

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var errIncomplete = status.Error(codes.Unavailable,
	"not every source has been read yet, so hdsd does not know what exists: ask again in a second")

// answerable reports whether a fetch can be answered before every source has been read. A
// Cluster response removes missing clusters, and so does a response with everything.
func (t *table) answerable(names []string, found int) bool {
	return !t.whole && len(names) > 0 && found == len(names)
}
