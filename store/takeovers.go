package store

import "hdsd/log"

// Rows of both buckets are names of clusters.
var (
	givenBack = []byte("given-back") // data planes check them again
	takenOver = []byte("taken-over") // data planes leave them to hdsd, although they have checks of their own
)

// saveTakeovers stores the clusters that an entry takes over, gives back or removes. It does not
// wait for the disk.
func (in *intake) saveTakeovers(e *log.Entry) {
	given, taken := map[string][]byte{}, map[string][]byte{}
	for _, change := range []struct {
		names        []string
		given, taken bool
	}{{e.TakenOver, false, true}, {e.Removed, false, false}, {e.GivenBack, true, false}} {
		for _, name := range change.names {
			setName(given, name, change.given)
			setName(taken, name, change.taken)
		}
	}
	in.put(givenBack, given)
	in.put(takenOver, taken)
}

// setName puts a row of a name, or deletes it.
func setName(rows map[string][]byte, name string, member bool) {
	key := rowKey(hashOf(name))
	if rows[key] = nil; member {
		rows[key] = []byte(name)
	}
}

// namesIn returns the names of a bucket; nil without a bucket.
func (r stateReader) namesIn(bucket []byte) map[string]bool {
	if r.tx.Bucket(bucket) == nil {
		return nil
	}
	clusters := map[string]bool{}
	r.damage.forEach(r.tx, bucket, func(_, name []byte) bool {
		clusters[string(name)] = true
		return true
	})
	return clusters
}
