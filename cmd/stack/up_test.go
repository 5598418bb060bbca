package main

import (
	"testing"
	"time"
)

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		150 * time.Millisecond: "0.1s", 4 * time.Second: "4.0s", 83400 * time.Millisecond: "83s",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
