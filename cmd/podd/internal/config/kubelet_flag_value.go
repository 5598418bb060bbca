package config

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// parse parses a value of f. Errors do not contain the value, because it may be secret.
func (f kubeletFlag) parse(value string) (Known, error) {
	k := Known{Name: f.name, field: f.field, empty: value == ""}
	v, err := f.shape.parse(value)
	if err != nil {
		return k, fmt.Errorf("--%s: %w", f.name, err)
	}
	if f.field != "" {
		k.value = v
	}
	if f.shape == boolean {
		k.empty = v == false
	}
	return k, nil
}

// parse returns a value of the shape in the form of JSON.
func (s shape) parse(value string) (any, error) {
	switch s {
	case boolean:
		b, err := strconv.ParseBool(value)
		if err != nil {
			return nil, fmt.Errorf("must be true or false")
		}
		return b, nil
	case number:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("must be an integer")
		}
		return n, nil
	case duration:
		d, err := time.ParseDuration(value)
		if err != nil {
			return nil, fmt.Errorf("is not a duration; write something like 10s, 5m or 1h30m")
		}
		return d.String(), nil
	case list:
		l := []any{}
		for item := range strings.SplitSeq(value, ",") {
			if item != "" {
				l = append(l, item)
			}
		}
		return l, nil
	case pairs:
		return parsePairs(value, "=")
	case thresholds:
		return parsePairs(value, "<")
	case featureGates:
		return parseGates(value)
	}
	return value, nil
}

// parsePairs parses comma-separated pairs of a name and a value.
func parsePairs(value, sep string) (map[string]any, error) {
	m := map[string]any{}
	for item := range strings.SplitSeq(value, ",") {
		if item == "" {
			continue
		}
		k, v, ok := strings.Cut(item, sep)
		if !ok {
			return nil, fmt.Errorf("must have the form NAME%sVALUE[,NAME%sVALUE]", sep, sep)
		}
		m[strings.TrimSpace(k)] = strings.TrimSpace(v)
	}
	return m, nil
}

// parseGates parses comma-separated feature gates.
func parseGates(value string) (any, error) {
	m, err := parsePairs(value, "=")
	if err != nil {
		return nil, err
	}
	for k, v := range m {
		b, err := strconv.ParseBool(v.(string))
		if err != nil {
			return nil, fmt.Errorf("must contain %s=true or %[1]s=false", k)
		}
		m[k] = b
	}
	return m, nil
}

// addKnown appends k to ks. If the flag is in ks already, lists and maps are joined, and
// other values are replaced.
func addKnown(ks []Known, k Known) []Known {
	for i := range ks {
		if ks[i].Name != k.Name {
			continue
		}
		switch v := k.value.(type) {
		case map[string]any:
			maps.Copy(ks[i].value.(map[string]any), v)
		case []any:
			ks[i].value = append(ks[i].value.([]any), v...)
		default:
			ks[i] = k
		}
		return ks
	}
	return append(ks, k)
}
