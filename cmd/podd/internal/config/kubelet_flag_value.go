package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"
)

// parse returns an UnsupportedFlag with the name of f and the value from the command line. Errors do
// not contain the value, because the value may be secret.
func (f kubeletFlag) parse(value string) (UnsupportedFlag, error) {
	flag := UnsupportedFlag{Name: f.name, field: f.field, isEmpty: value == ""}
	fieldValue, err := f.format.parse(value)
	if err != nil {
		return flag, fmt.Errorf("--%s: %w", f.name, err)
	}
	if f.field != "" {
		flag.value = fieldValue
	}
	if f.format == booleanFormat {
		flag.isEmpty = fieldValue == false
	}
	return flag, nil
}

// parse parses a value from the command line. It returns the value in the form that encoding/json
// decodes it to, for example []any for a list.
func (f valueFormat) parse(value string) (any, error) {
	switch f {
	case booleanFormat:
		b, err := strconv.ParseBool(value)
		if err != nil {
			return nil, fmt.Errorf("must be true or false")
		}
		return b, nil
	case numberFormat:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("must be an integer")
		}
		return n, nil
	case durationFormat:
		d, err := time.ParseDuration(value)
		if err != nil {
			return nil, fmt.Errorf("is not a duration; write something like 10s, 5m or 1h30m")
		}
		return d.String(), nil
	case listFormat:
		l := []any{}
		for item := range strings.SplitSeq(value, ",") {
			if item != "" {
				l = append(l, item)
			}
		}
		return l, nil
	case pairsFormat:
		return parsePairs(value, "=")
	case thresholdsFormat:
		return parsePairs(value, "<")
	case featureGatesFormat:
		return parseGates(value)
	case vmoduleFormat:
		return parseVModule(value)
	case numaMemoryFormat:
		return parseNUMAMemory(value)
	case runtimeFormat:
		if value != "remote" {
			return nil, errors.New("must be remote, because podd contains no container runtime; install containerd, CRI-O or, for Docker Engine, cri-dockerd, and set --container-runtime-endpoint")
		}
	}
	return value, nil
}

// formerFractions are the flags with integers whose values could have fractions in the kubelets up to
// Kubernetes 1.5 (Float32Var and Float64Var in cmd/kubelet/app/options/options.go).
var formerFractions = newSet("event-qps", "kube-api-qps", "registry-qps")

// removeFraction returns the value of a flag in formerFractions without a fraction of zero, such as 5 for
// 5.0. Any other fraction is an error, which suggests the next greater integer, because 0 means no limit.
// removeFraction does not change negative numbers and values that are not numbers. They are rejected later.
func removeFraction(value string) (string, error) {
	number, err := strconv.ParseFloat(value, 64)
	if isValid := 0 <= number && number < math.MaxInt32; err != nil || !isValid {
		return value, nil
	}
	whole := math.Ceil(number)
	if whole != number {
		return "", fmt.Errorf("must be an integer; earlier kubelets also accepted fractions; set %.0f", whole)
	}
	return strconv.FormatInt(int64(whole), 10), nil
}

// parsePairs parses comma-separated pairs of a name and a value. sep separates the name from
// the value.
func parsePairs(value, sep string) (map[string]any, error) {
	m := map[string]any{}
	for item := range strings.SplitSeq(value, ",") {
		if item == "" {
			continue
		}
		name, text, ok := strings.Cut(item, sep)
		if !ok {
			return nil, fmt.Errorf("must have the form NAME%sVALUE[,NAME%sVALUE]", sep, sep)
		}
		m[strings.TrimSpace(name)] = strings.TrimSpace(text)
	}
	return m, nil
}

// parseGates parses comma-separated feature gates, such as "A=true,B=false". The result is a
// map[string]any with values of type bool.
func parseGates(value string) (any, error) {
	m, err := parsePairs(value, "=")
	if err != nil {
		return nil, err
	}
	for name, value := range m {
		isOn, err := strconv.ParseBool(value.(string))
		if err != nil {
			return nil, fmt.Errorf("must contain %s=true or %[1]s=false", name)
		}
		m[name] = isOn
	}
	return m, nil
}

// parseVModule parses comma-separated pairs of a file pattern and a verbosity, such as
// "manager=4,plan*=2". The result is a list of the form of logging.vmodule.
func parseVModule(value string) (any, error) {
	items := []any{}
	for item := range strings.SplitSeq(value, ",") {
		if item == "" {
			continue
		}
		pattern, text, _ := strings.Cut(item, "=")
		verbosity, err := strconv.ParseUint(text, 10, 31)
		if err != nil || pattern == "" {
			return nil, errors.New("must have the form PATTERN=VERBOSITY[,PATTERN=VERBOSITY]")
		}
		items = append(items, map[string]any{"filePattern": pattern, "verbosity": int64(verbosity)})
	}
	return items, nil
}

// parseNUMAMemory parses memory of NUMA nodes, such as "0:memory=1Gi,hugepages-2Mi=1Gi;1:memory=2Gi".
// The result is a list of the form of reservedMemory.
func parseNUMAMemory(value string) (any, error) {
	all := []any{}
	if value == "" {
		return all, nil
	}
	for item := range strings.SplitSeq(value, ";") {
		node, text, _ := strings.Cut(item, ":")
		number, err := strconv.ParseInt(node, 10, 32)
		limits, formErr := parsePairs(text, "=")
		if err != nil || formErr != nil || len(limits) == 0 {
			return nil, errors.New("must have the form NODE:NAME=QUANTITY[,NAME=QUANTITY][;NODE:…]")
		}
		all = append(all, map[string]any{"numaNode": number, "limits": limits})
	}
	return all, nil
}

// addUnsupported appends a flag to flags. If flags already contains the flag, addUnsupported joins
// the two values if they are lists or maps, and otherwise replaces the earlier value.
func addUnsupported(flags []UnsupportedFlag, flag UnsupportedFlag) []UnsupportedFlag {
	for i := range flags {
		if flags[i].Name != flag.Name {
			continue
		}
		switch value := flag.value.(type) {
		case map[string]any:
			maps.Copy(flags[i].value.(map[string]any), value)
		case []any:
			flags[i].value = append(flags[i].value.([]any), value...)
		default:
			flags[i] = flag
		}
		return flags
	}
	return append(flags, flag)
}
