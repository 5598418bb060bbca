package selinux

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// A Policy contains the labels of the host's SELinux policy for containers, and the configuration. The
// zero value is the Policy of a host without SELinux.
type Policy struct {
	// Process is the label of a container's process, such as "system_u:system_r:container_t:s0". File is
	// the label of its files, such as "system_u:object_r:container_file_t:s0". Both come from the file
	// lxc_contexts of the policy. If File is "", podd mounts no volume with a label.
	Process, File string
	// OnlySinglePod restricts labels to volumes with the only access mode ReadWriteOncePod. It is set if
	// the feature gate SELinuxMount is disabled.
	OnlySinglePod bool
}

// IsEnabled reports whether podd mounts volumes with labels.
func (p Policy) IsEnabled() bool { return p.File != "" }

// Label returns the label of the files of a container with these options. It returns "" if the container
// runtime determines the label. The error is an *Error.
func (p Policy) Label(o *v1.SELinuxOptions) (string, error) {
	if *o == (v1.SELinuxOptions{}) || o.Level == "" && level(p.Process) != "" {
		return "", nil
	}
	if p.Process == "" { // the runtime then ignores the options
		return p.File, nil
	}
	switch {
	case !isLabelPart(o.User, "_.-"):
		return "", &Error{InvalidLabel, fmt.Sprintf("seLinuxOptions.user: %.100q cannot be a part of an SELinux label", o.User)}
	case !isLabelPart(o.Level, "_.-,:"):
		return "", &Error{InvalidLabel, fmt.Sprintf("seLinuxOptions.level: %.100q cannot be a part of an SELinux label", o.Level)}
	}
	parts := strings.SplitN(p.File, ":", 4)
	parts[0] = cmp.Or(o.User, parts[0])
	if l := cmp.Or(canonicalLevel(o.Level), level(p.File)); l != "" {
		parts = append(parts[:min(len(parts), 3)], l)
	}
	return strings.Join(parts, ":"), nil
}

// maxPartLength is the maximum length of a part of a label from a pod. The kernel limits a label to one page.
const maxPartLength = 1000

// isLabelPart reports whether text can be a part of a label: it contains only letters, digits and the
// characters in others. The label becomes a mount option, so it must contain no quotation marks.
func isLabelPart(text, others string) bool {
	return len(text) <= maxPartLength && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(others, r)
	})
}

// level returns the level of a label, or "" if the label has none.
func level(label string) string {
	parts := strings.SplitN(label, ":", 4)
	if len(parts) < 4 {
		return ""
	}
	return parts[3]
}

// canonicalLevel returns a level, such as "s0:c1,c2" or "s0-s1:c0.c9", in the notation of the kernel
// (mls_sid_to_context). A level in another format is returned unchanged.
func canonicalLevel(level string) string {
	low, high, isRange := strings.Cut(level, "-")
	low, okLow := canonicalCategories(low)
	high, okHigh := canonicalCategories(high)
	switch {
	case !okLow, isRange && !okHigh:
		return level
	case !isRange, low == high:
		return low
	}
	return low + "-" + high
}

// maxCategory is the maximum number of a category. Policies have at most 1024 categories.
const maxCategory = 1<<14 - 1

// canonicalCategories sorts and combines the categories after a sensitivity, such as "s0:c3,c1,c2".
func canonicalCategories(text string) (canonical string, ok bool) {
	sensitivity, list, hasCategories := strings.Cut(text, ":")
	if !hasCategories {
		return text, true
	}
	var isSet [maxCategory + 1]bool
	count := 0 // with duplicates; limited, because a short text can contain many large ranges
	for item := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(item, ".")
		from, err := parseCategory(first)
		if err != nil {
			return "", false
		}
		to := from
		if isRange {
			if to, err = parseCategory(last); err != nil {
				return "", false
			}
		}
		if count += to - from + 1; from > to || count > len(isSet) {
			return "", false
		}
		for c := from; c <= to; c++ {
			isSet[c] = true
		}
	}
	var sorted []int
	for c := range isSet {
		if isSet[c] {
			sorted = append(sorted, c)
		}
	}
	return sensitivity + ":" + formatCategories(sorted), true
}

func parseCategory(text string) (int, error) {
	number, ok := strings.CutPrefix(text, "c")
	n, err := strconv.ParseUint(number, 10, 32)
	if err == nil && (!ok || n > maxCategory) {
		err = strconv.ErrRange
	}
	return int(n), err
}

// formatCategories formats sorted categories. Three or more consecutive categories become a range.
func formatCategories(sorted []int) string {
	var parts []string
	for start := 0; start < len(sorted); {
		end := start
		for end+1 < len(sorted) && sorted[end+1] == sorted[end]+1 {
			end++
		}
		separator := "."
		if end == start+1 {
			separator = ","
		}
		part := fmt.Sprintf("c%d", sorted[start])
		if end > start {
			part += fmt.Sprintf("%sc%d", separator, sorted[end])
		}
		parts = append(parts, part)
		start = end + 1
	}
	return strings.Join(parts, ",")
}
