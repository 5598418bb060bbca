package selinux

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// mcs is the policy of Debian, Fedora and most other distributions.
var mcs = Policy{Process: "system_u:system_r:container_t:s0", File: "system_u:object_r:container_file_t:s0"}

func TestLabel(t *testing.T) {
	for name, c := range map[string]struct {
		policy  Policy
		options v1.SELinuxOptions
		want    string
	}{
		"level":                     {mcs, v1.SELinuxOptions{Level: "s0:c1,c2"}, "system_u:object_r:container_file_t:s0:c1,c2"},
		"all options":               {mcs, v1.SELinuxOptions{User: "u", Role: "r", Type: "t", Level: "s0"}, "u:object_r:container_file_t:s0"},
		"unsorted categories":       {mcs, v1.SELinuxOptions{Level: "s0:c2,c1"}, "system_u:object_r:container_file_t:s0:c1,c2"},
		"unknown notation":          {mcs, v1.SELinuxOptions{Level: "SystemHigh"}, "system_u:object_r:container_file_t:SystemHigh"},
		"no level":                  {mcs, v1.SELinuxOptions{Type: "spc_t"}, ""},
		"no option":                 {mcs, v1.SELinuxOptions{}, ""},
		"policy without levels":     {Policy{Process: "u:r:p", File: "u:r:f"}, v1.SELinuxOptions{User: "x"}, "x:r:f"},
		"level without levels":      {Policy{Process: "u:r:p", File: "u:r:f"}, v1.SELinuxOptions{Level: "s0"}, "u:r:f:s0"},
		"policy without containers": {Policy{File: "u:r:f:s0"}, v1.SELinuxOptions{Level: "s0:c1"}, "u:r:f:s0"},
	} {
		if got, err := c.policy.Label(&c.options); err != nil || got != c.want {
			t.Errorf("%s: got label %q (error %v), want %q", name, got, err, c.want)
		}
	}
	for _, o := range []v1.SELinuxOptions{
		{Level: `s0",exec,context="`}, {Level: "s0\n"}, {User: "a:b", Level: "s0"}, {User: "ü", Level: "s0"}, {Level: "s0:" + strings.Repeat("c0.c9,", 1000)},
	} {
		label, err := mcs.Label(&o)
		if e, is := errors.AsType[*Error](err); !is || e.Kind != InvalidLabel {
			t.Errorf("%.100v: got label %.100q (error %v), want an error", o, label, err)
		}
	}
}

func TestCanonicalLevel(t *testing.T) {
	manyRanges := "s0:c1" + strings.Repeat(",c0.c16383", 90) // is not expanded
	for level, want := range map[string]string{
		"":                      "",
		"s0":                    "s0",
		"s0:c1":                 "s0:c1",
		"s0:c0.c1023":           "s0:c0.c1023",
		"s0:c1.c2":              "s0:c1,c2",
		"s0:c2,c1,c0":           "s0:c0.c2",
		"s0:c5,c5":              "s0:c5",
		"s0:c1.c3,c7,c9,c10":    "s0:c1.c3,c7,c9,c10",
		"s0-s0":                 "s0",
		"s0-s0:c1,c0":           "s0-s0:c0,c1",
		"s0:c3.c1":              "s0:c3.c1",
		"s0:c5,c3.c1":           "s0:c5,c3.c1",
		"s0:":                   "s0:",
		"s0:x1":                 "s0:x1",
		"s0:c-1":                "s0:c-1",
		"s0:c99999":             "s0:c99999",
		"s0:c0.c99999":          "s0:c0.c99999",
		"s0-s1:c":               "s0-s1:c",
		"SystemLow-SystemHigh":  "SystemLow-SystemHigh",
		"s0:c1,c2-s0:c4,c3,c1x": "s0:c1,c2-s0:c4,c3,c1x",
		manyRanges:              manyRanges,
	} {
		if got := canonicalLevel(level); got != want {
			t.Errorf("%q: got %q, want %q", level, got, want)
		}
	}
}
