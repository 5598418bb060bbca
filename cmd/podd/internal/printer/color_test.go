package printer

import "testing"

// TestColorStatus checks the colors of statuses: 32 is green, 31 is red and 33 is yellow.
func TestColorStatus(t *testing.T) {
	for status, want := range map[string]string{
		"Running": "32", "Completed": "32", "CrashLoopBackOff": "31", "Init:Error": "31", "ErrImagePull": "31", "OOMKilled": "31",
		"Pending": "33", "ContainerCreating": "33", "Init:0/2": "33", "Terminating": "33",
	} {
		if got := ColorStatus(status); got != "\x1b["+want+"m"+status+"\x1b[0m" {
			t.Errorf("%s: got %q, want the color with code %s", status, got, want)
		}
	}
}
