package paths

import "testing"

func TestShortenStart(t *testing.T) {
	for _, tt := range []struct{ text, dir, want string }{
		{"/etc/podd/web.yaml:3:5: image: required", "/etc/podd", "web.yaml:3:5: image: required"},
		{"/etc/podd/web.yaml: invalid URL http://a//b", "/etc", "podd/web.yaml: invalid URL http://a//b"},
		{"/etc/podd/web.yaml: image: required", "/", "etc/podd/web.yaml: image: required"},
		{"/etc/podd-2/web.yaml: image: required", "/etc/podd", "/etc/podd-2/web.yaml: image: required"},
		{"/etc/podd/web.yaml: image: required", "", "/etc/podd/web.yaml: image: required"},
		{"Back-off restarting", "/etc/podd", "Back-off restarting"},
	} {
		if got := ShortenStart(tt.text, tt.dir); got != tt.want {
			t.Errorf("%q in %q: got %q, want %q", tt.text, tt.dir, got, tt.want)
		}
	}
}
