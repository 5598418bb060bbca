package main

import (
	"testing"
	"time"
)

func TestParseVersion(t *testing.T) {
	created := time.Date(2026, 11, 26, 21, 53, 17, 0, time.UTC)
	for _, tt := range []struct{ described, linux, apk string }{
		{"v1.2.3", "1.2.3", "1.2.3"},
		{"1.2.3", "1.2.3", "1.2.3"},
		{"v1.2.3-rc.1", "1.2.3~rc1", "1.2.3_rc1"},
		{"v1.2.3-beta2", "1.2.3~beta2", "1.2.3_beta2"},
		{"v1.2.3-4-g1a2b3c4d", "1.2.3+git4.1a2b3c4d", "1.2.3_git4"},
		{"v1.2.3-rc.1-4-g1a2b3c4d", "1.2.3~rc1+git4.1a2b3c4d", "1.2.3_rc1_git4"},
		{"v1.2.3-dirty", "1.2.3+dirty", "1.2.3"},
		{"v1.2.3-4-g1a2b3c4d-dirty", "1.2.3+git4.1a2b3c4d.dirty", "1.2.3_git4"},
		{"66711388", "0.0.0~git20261126215317.66711388", "0.0.0_git20261126215317"},
		{"66711388-dirty", "0.0.0~git20261126215317.66711388.dirty", "0.0.0_git20261126215317"},
		{"devel", "0.0.0~git20261126215317", "0.0.0_git20261126215317"},
	} {
		got, err := parseVersion(tt.described, created)
		if want := (version{tt.described, tt.linux, tt.apk}); err != nil || got != want {
			t.Errorf("parseVersion(%q): got %+v, error %v; want %+v", tt.described, got, err, want)
		}
	}
	for _, described := range []string{"", "v1.2", "v1.2.3-nightly", "v1.2.3 ", "../x"} {
		if got, err := parseVersion(described, created); err == nil {
			t.Errorf("parseVersion(%q): got %+v, want an error", described, got)
		}
	}
}
