package disk

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestParsePortal(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1":                "192.0.2.1:3260",
		"192.0.2.1:860":            "192.0.2.1:860",
		"2001:db8::1":              "[2001:db8::1]:3260",
		"[2001:db8::1]":            "[2001:db8::1]:3260",
		"[2001:DB8:0::1]:3261":     "[2001:db8::1]:3261",
		"storage.example.com":      "storage.example.com:3260",
		"storage.example.com:3261": "storage.example.com:3261",
		"":                         "",
		":3260":                    "",
		"192.0.2.1:":               "",
		"192.0.2.1:0":              "",
		"192.0.2.1:03260":          "",
		"192.0.2.1:65536":          "",
		"192.0.2.1:+1":             "",
		"192.0.2.1,1":              "",
		"192.0.2.1:3260,1":         "",
		"[192.0.2.1]:3260":         "",
		"[fe80::1%eth0]:3260":      "",
		"fe80::1%eth0":             "",
		"2001:db8::1:x":            "",
		"[2001:db8::1":             "",
		"-p":                       "",
		"--logout":                 "",
		"../etc":                   "",
		"a b":                      "",
		"a\nb":                     "",
		"host/path":                "",
	} {
		got := ""
		if p, ok := parsePortal(text); ok {
			got = p.String()
		}
		if got != want {
			t.Errorf("parsePortal(%q): got %q, want %q", text, got, want)
		}
	}
}

// validISCSI returns a valid source.
func validISCSI() *v1.ISCSIPersistentVolumeSource {
	return &v1.ISCSIPersistentVolumeSource{TargetPortal: "192.0.2.1", IQN: "iqn.2001-04.com.example:disk", Lun: 1}
}

func TestNewISCSI(t *testing.T) {
	s := validISCSI()
	s.Portals = []string{"192.0.2.1:3260", "192.0.2.2"}
	d, errs := NewISCSI(s, nil)
	if len(errs) > 0 {
		t.Fatalf("got %v, want no errors", errs)
	}
	if len(d.Portals) != 2 || d.Interface != "default" || d.Portals[1].String() != "192.0.2.2:3260" {
		t.Errorf("got %+v, want each portal once, with the default port, and the default interface", d)
	}
}

func TestNewISCSI_Invalid(t *testing.T) {
	name := func(text string) *string { return &text }
	for want, change := range map[string]func(s *v1.ISCSIPersistentVolumeSource){
		"iscsi.targetPortal":   func(s *v1.ISCSIPersistentVolumeSource) { s.TargetPortal = "" },
		"iscsi.portals[0]":     func(s *v1.ISCSIPersistentVolumeSource) { s.Portals = []string{"--logoutall=all"} },
		"iscsi.iqn":            func(s *v1.ISCSIPersistentVolumeSource) { s.IQN = "iqn.2001-04.com.example:../../x" },
		"iscsi.lun":            func(s *v1.ISCSIPersistentVolumeSource) { s.Lun = 256 },
		"iscsi.iscsiInterface": func(s *v1.ISCSIPersistentVolumeSource) { s.ISCSIInterface = "../x" },
		"iscsi.initiatorName":  func(s *v1.ISCSIPersistentVolumeSource) { s.InitiatorName = name("x") },
		"iscsi.secretRef":      func(s *v1.ISCSIPersistentVolumeSource) { s.SessionCHAPAuth = true },
		"iscsi.fsType":         func(s *v1.ISCSIPersistentVolumeSource) { s.FSType = "overlay" },
	} {
		s := validISCSI()
		change(s)
		if _, errs := NewISCSI(s, field.NewPath("iscsi")); len(errs) != 1 || errs[0].Field != want {
			t.Errorf("got errors %v, want one about the field %s", errs, want)
		}
	}
}

func TestValidateNodeName(t *testing.T) {
	for _, name := range []string{"iqn.2001-04.com.example:storage.disk2.sys1.xyz", "eui.02004567A425678D", "naa." + strings.Repeat("0", 32), "iqn.2015-02.example.com:a_b"} {
		if errs := validateNodeName(name, nil); len(errs) > 0 {
			t.Errorf("%q: got %v, want no errors", name, errs)
		}
	}
	for _, name := range []string{
		"", "iqn", "iqn.2001-04.com.example", "iqn.2001-04.com.example:", "iqn.2001-04.com.example:a/b", "iqn.2001-04.com.example:a b", "iqn.2001-04.com.example:a\n",
		"iqn.2001-04.com.example:$(x)", "x iqn.2001-04.com.example:a", "eui.0200", "naa.0200", "-T", "iqn.2001-04.com.example:" + strings.Repeat("a", 223),
	} {
		if errs := validateNodeName(name, nil); len(errs) == 0 {
			t.Errorf("%q: got no errors, want one", name)
		}
	}
}

func TestNewFC(t *testing.T) {
	lun, big := int32(2), int32(256)
	for name, c := range map[string]struct {
		source v1.FCVolumeSource
		want   string // field of the only error; "" if there is none
	}{
		"targets":               {v1.FCVolumeSource{TargetWWNs: []string{"500A0982991B8DC5"}, Lun: &lun}, ""},
		"identifiers":           {v1.FCVolumeSource{WWIDs: []string{"3600508b400105e210000900000490000", "VENDOR 0123"}}, ""},
		"nothing":               {v1.FCVolumeSource{}, "fc.targetWWNs"},
		"both":                  {v1.FCVolumeSource{TargetWWNs: []string{"500a0982991b8dc5"}, Lun: &lun, WWIDs: []string{"x"}}, "fc.targetWWNs"},
		"no LUN":                {v1.FCVolumeSource{TargetWWNs: []string{"500a0982991b8dc5"}}, "fc.lun"},
		"a LUN that is too big": {v1.FCVolumeSource{TargetWWNs: []string{"500a0982991b8dc5"}, Lun: &big}, "fc.lun"},
		"a pattern as target":   {v1.FCVolumeSource{TargetWWNs: []string{".*"}, Lun: &lun}, "fc.targetWWNs[0]"},
		"a prefix 0x":           {v1.FCVolumeSource{TargetWWNs: []string{"0x500a0982991b8dc5"}, Lun: &lun}, "fc.targetWWNs[0]"},
		"a path as identifier":  {v1.FCVolumeSource{WWIDs: []string{"../../sda"}}, "fc.wwids[0]"},
		"an unknown filesystem": {v1.FCVolumeSource{WWIDs: []string{"x"}, FSType: "../mkfs"}, "fc.fsType"},
	} {
		_, errs := NewFC(&c.source, field.NewPath("fc"))
		got := ""
		if len(errs) > 0 {
			got = errs[0].Field
		}
		if got != c.want || len(errs) > 1 {
			t.Errorf("%s: got errors %v, want only one error about the field %q (no error if the field is \"\")", name, errs, c.want)
		}
	}
}

func TestFC_Matches(t *testing.T) {
	byTarget := FC{Targets: []string{"500a0982991b8dc5"}, LUN: 1}
	for name, want := range map[string]bool{
		"pci-0000:41:00.0-fc-0x500a0982991b8dc5-lun-1":       true,
		"fc-0x500a0982991b8dc5-lun-1":                        true,
		"pci-0000:41:00.0-fc-0x500a0982991b8dc5-lun-10":      false,
		"pci-0000:41:00.0-fc-0x500a0982991b8dc5-lun-1-part1": false,
		"fc-0x500a0982991b8dc6-lun-1":                        false,
		"ip-192.0.2.1-fc-0x500a0982991b8dc5-lun-1":           false,
		"pci-xfc-0x500a0982991b8dc5-lun-1":                   false,
	} {
		if got := byTarget.MatchesPath(name); got != want {
			t.Errorf("MatchesPath(%q): got %v, want %v", name, got, want)
		}
	}
	byID := FC{WWIDs: []string{"3600508b", "VENDOR_01"}}
	for name, want := range map[string]bool{"scsi-3600508b": true, "scsi-VENDOR_01": true, "scsi-3600508b-part1": false, "wwn-0x3600508b": false, "3600508b": false} {
		if got := byID.MatchesID(name); got != want {
			t.Errorf("MatchesID(%q): got %v, want %v", name, got, want)
		}
	}
}

func TestValidateMountOptions(t *testing.T) {
	for text, want := range map[string]bool{
		"noatime": true, "noatime,discard": true, "data=journal": true,
		"": false, "noatime,": false, "bind": false, "X-mount.subdir=a": false, "x-systemd.automount": false, "loop=/dev/loop0": false, "offset=1": false, " remount": false, "helper=x": false, "a\nb": false, `context="a`: false,
	} {
		if errs := ValidateMountOptions([]string{text}, nil); (len(errs) == 0) != want {
			t.Errorf("%q: got %v, want valid: %v", text, errs, want)
		}
	}
}
