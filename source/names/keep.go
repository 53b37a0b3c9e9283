package names

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

const maxKeptBytes = 64 << 20

// keptLine is one name in the file.
type keptLine struct {
	Name      string       `json:"name"`
	Family    string       `json:"family"`
	Addresses []netip.Addr `json:"addresses"`
}

// good returns the addresses of all names that have some. It drops those of names that nobody has
// needed for long.
func (b *book) good(now time.Time) []keptLine {
	most := map[keptName][]netip.Addr{} // some questions about a name retain addresses, others do not
	for q, s := range b.states {
		if name := q.kept(); len(s.answer.Addresses) >= len(most[name]) {
			most[name] = s.answer.Addresses
		}
	}
	for name, known := range b.idle {
		switch _, needed := most[name]; {
		case needed:
		case now.Sub(known.since) > idleTime:
			delete(b.idle, name)
		default:
			most[name] = known.addresses
		}
	}
	all := make([]keptLine, 0, len(most))
	for name, addresses := range most {
		if len(addresses) > 0 {
			all = append(all, keptLine{name.Host, name.Family, addresses})
		}
	}
	return all
}

func writeKept(path string, all []keptLine) error {
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, data, 0o600, renameio.WithTempDir(filepath.Dir(path)))
}

func readKept(path string) (map[keptName][]netip.Addr, error) {
	kept := map[keptName][]netip.Addr{}
	if path == "" {
		return kept, nil
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return kept, nil
	}
	if err != nil {
		return kept, err
	}
	defer file.Close() //nolint:errcheck // it is read only
	var all []keptLine
	if err := json.NewDecoder(io.LimitReader(file, maxKeptBytes)).Decode(&all); err != nil {
		return kept, fmt.Errorf("%s is no file of names: remove it: %w", path, err)
	}
	for _, one := range all {
		if len(one.Addresses) <= maxAddresses+maxRetained {
			kept[keptName{one.Name, one.Family}] = one.Addresses
		}
	}
	return kept, nil
}
