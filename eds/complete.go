package eds

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var errIncomplete = status.Error(codes.Unavailable,
	"not every source has been read yet, so that it is not known what exists: ask again in a second")

// knows tells whether everything that a fetch asks for can be answered though
// not every source has been read. A Cluster response removes what is not in it,
// and so does one of everything.
func (t *table) knows(names []string, found int) bool {
	return !t.whole && len(names) > 0 && found == len(names)
}
