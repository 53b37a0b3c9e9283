package bootstrap

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hdsd/health"
)

// JSON converts a bootstrap to JSON, which has no comments.
func JSON(bootstrap []byte) ([]byte, error) {
	var value any
	if err := yaml.Unmarshal(bootstrap, &value); err != nil {
		return nil, err
	}
	encoded, err := json.MarshalIndent(value, "", "  ")
	return append(encoded, '\n'), err
}

// plain matches strings that YAML accepts without quotes.
var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)

// notStrings are plain words that some version of YAML does not read as strings.
var notStrings = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}

// text writes a string, quoted if necessary.
func text(value string) string {
	if plain.MatchString(value) && !slices.Contains(notStrings, strings.ToLower(value)) {
		return value
	}
	return strconv.Quote(value) // YAML accepts all of Go's escapes
}

// address writes an address; the caller has checked host:port.
func address(hostPort string) string {
	host, port, _ := net.SplitHostPort(hostPort)
	if _, err := netip.ParseAddr(host); err != nil || strings.Contains(host, ":") {
		host = text(host)
	}
	return fmt.Sprintf("{socket_address: {address: %s, port_value: %s}}", host, port)
}

func locality(l health.Locality) string {
	var parts []string
	for _, part := range [][2]string{{"region", l.Region}, {"zone", l.Zone}, {"sub_zone", l.SubZone}} {
		if part[1] != "" {
			parts = append(parts, part[0]+": "+text(part[1]))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// mapping writes metadata, ordered by key.
func mapping(metadata map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		parts = append(parts, text(key)+": "+text(metadata[key]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
