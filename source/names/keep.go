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

// good returns all names with addresses. It drops names unused for long.
func (b *book) good(now time.Time) []keptLine {
	kept := map[keptName][]netip.Addr{} // some questions about a name retain addresses, others do not
	for q, s := range b.states {
		if name := q.kept(); len(s.answer.Addresses) >= len(kept[name]) {
			kept[name] = s.answer.Addresses
		}
	}
	for name, entry := range b.idle {
		switch _, needed := kept[name]; {
		case needed:
		case now.Sub(entry.start) > idleTime:
			delete(b.idle, name)
		default:
			kept[name] = entry.addresses
		}
	}
	lines := make([]keptLine, 0, len(kept))
	for name, addresses := range kept {
		if len(addresses) > 0 {
			lines = append(lines, keptLine{name.Host, name.Family, addresses})
		}
	}
	return lines
}

func writeKept(path string, lines []keptLine) error {
	data, err := json.Marshal(lines)
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
	var lines []keptLine
	if err := json.NewDecoder(io.LimitReader(file, maxKeptBytes)).Decode(&lines); err != nil {
		return kept, fmt.Errorf("%s is no file of names: remove it: %w", path, err)
	}
	for _, line := range lines {
		if len(line.Addresses) <= maxAddresses+maxRetained {
			kept[keptName{line.Name, line.Family}] = line.Addresses
		}
	}
	return kept, nil
}
