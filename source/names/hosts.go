package names

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const maxHosts = 4 << 20 // bytes of the hosts file

// hosts is the machine's hosts file. It is read again when it has changed.
type hosts struct {
	path string

	mu       sync.Mutex
	checked  time.Time
	modified time.Time
	byName   map[string][]netip.Addr
}

// find returns the addresses of a name in lower case.
func (h *hosts) find(name string) []netip.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.checked.IsZero() || time.Since(h.checked) >= systemFor {
		h.checked = time.Now()
		h.read()
	}
	return h.byName[name]
}

func (h *hosts) read() {
	info, err := os.Stat(h.path)
	if err != nil || info.Size() > maxHosts {
		h.byName, h.modified = nil, time.Time{}
		return
	}
	if info.ModTime().Equal(h.modified) {
		return
	}
	data, err := os.ReadFile(h.path)
	if err != nil {
		return
	}
	h.byName, h.modified = parseHosts(string(data)), info.ModTime()
}

func parseHosts(text string) map[string][]netip.Addr {
	byName := map[string][]netip.Addr{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		address, err := netip.ParseAddr(fields[0])
		if err != nil || address.Zone() != "" {
			continue
		}
		for _, name := range fields[1:] {
			name = strings.ToLower(name)
			if address = address.Unmap(); !slices.Contains(byName[name], address) {
				byName[name] = append(byName[name], address)
			}
		}
	}
	return byName
}
