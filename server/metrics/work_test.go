package metrics

import "testing"

// TestRejectionLabel checks that the label depends on the resource, and not on the text of the
// reason.
func TestRejectionLabel(t *testing.T) {
	for _, tt := range []struct{ reason, insufficient, want string }{
		{"OutOfcpu", "cpu", "OutOfcpu"},
		{"OutOfpods", "pods", "OutOfpods"},
		{"OutOfhugepages-2Mi", "hugepages-2Mi", "OutOfExtendedResources"},
		{"SysctlForbidden", "", "SysctlForbidden"},
		{"VolumeAttachmentLimitExceeded", "", "VolumeAttachmentLimitExceeded"},
		{"UnexpectedAdmissionError", "", "UnexpectedAdmissionError"},
		{"Evicted", "", "Evicted"},
		{"HostPortConflict", "", "Other"},
		{"OutOfLuck", "", "Other"},
	} {
		if got := rejectionLabel(tt.reason, tt.insufficient); got != tt.want {
			t.Errorf("%s, resource %q: got %s, want %s", tt.reason, tt.insufficient, got, tt.want)
		}
	}
}
