package main

import "testing"

func TestNamedIP(t *testing.T) {
	if got := namedIP("192.0.2.7"); got != "192.0.2.7" {
		t.Errorf("an address: got %q", got)
	}
	if got := namedIP("localhost"); got != "" {
		t.Errorf("a name of loopback: got %q", got)
	}
}
