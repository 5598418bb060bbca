package plan

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// TestAdmission: what several names are answered at once. A name is written
// "name holds 80 wants 81", with "-" for nothing, and then words: present, yields, rests,
// uid X (that it wants), has X (a uid it has on disk).
func TestAdmission(t *testing.T) {
	tests := map[string]struct {
		names []string
		max   int
		want  string // of those that want something, in their order
	}{
		"the first by name":                   {[]string{"b holds - wants 80", "a holds - wants 80"}, 0, "b reject, a admit"},
		"who is present goes first":           {[]string{"a holds - wants 80", "b holds 80 wants 80 present"}, 0, "a reject, b admit"},
		"its own port":                        {[]string{"a holds 80 wants 80 present"}, 0, "a admit"},
		"who is removed":                      {[]string{"a holds 80 wants - present yields", "b holds - wants 80"}, 0, "b wait"},
		"whose manifest may come back":        {[]string{"a holds 80 wants - present", "b holds - wants 80"}, 0, "b reject"},
		"who is edited":                       {[]string{"a holds 80 wants 81 present yields", "b holds - wants 80"}, 0, "a admit, b wait"},
		"who is edited and pulls":             {[]string{"a holds 80 wants 81 present", "b holds - wants 80"}, 0, "a admit, b reject"},
		"they swap":                           {[]string{"a holds 80 wants 81 present yields", "b holds 81 wants 80 present yields"}, 0, "a wait, b wait"},
		"they swap, one pulls":                {[]string{"a holds 80 wants 81 present yields", "b holds 81 wants 80 present"}, 0, "a reject, b reject"},
		"in a ring":                           {[]string{"a holds 1 wants 2 present yields", "b holds 2 wants 3 present yields", "c holds 3 wants 1 present yields"}, 0, "a wait, b wait, c wait"},
		"rejected edits keep what they hold":  {[]string{"a holds 90 wants 80 present yields", "x holds 80 wants 81 present yields", "z holds 81 wants 81 present"}, 0, "a reject, x reject, z admit"},
		"and so on":                           {[]string{"a holds 1 wants 2 present yields", "b holds 2 wants 3 present yields", "c holds 3 wants 4 present yields", "d holds 4 wants 4 present"}, 0, "a reject, b reject, c reject, d admit"},
		"full":                                {[]string{"a holds - wants 1 present", "b holds - wants 2", "c holds - wants 3"}, 2, "a admit, b admit, c reject"},
		"full, one is ending":                 {[]string{"a holds - wants - present yields", "b holds - wants 2", "c holds - wants 3"}, 1, "b wait, c reject"},
		"full of who is there":                {[]string{"a holds - wants 1 present", "b holds - wants 2 present"}, 1, "a admit, b admit"},
		"no limit":                            {[]string{"a holds - wants 1", "b holds - wants 2"}, 0, "a admit, b admit"},
		"a uid moves":                         {[]string{"a holds - wants - present yields has x", "b holds - wants 1 uid x"}, 0, "b wait"},
		"a uid stays":                         {[]string{"a holds - wants 1 uid x has x", "b holds - wants 2 uid y"}, 0, "a admit, b admit"},
		"uids are swapped":                    {[]string{"a holds - wants 1 uid y has x present yields", "b holds - wants 2 uid x has y present yields"}, 0, "a wait, b wait"},
		"who ran to its end":                  {[]string{"a holds - wants 80 rests", "b holds - wants 80"}, 1, "a admit, b admit"},
		"rejected pods take no place or port": {[]string{"a holds 80 wants 80 present", "b holds - wants 80", "c holds - wants 81"}, 3, "a admit, b reject, c admit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var claimants []Claimant
			for _, text := range test.names {
				claimants = append(claimants, claimant(text))
			}
			verdicts := Admission(claimants, Limits{MaxPods: test.max})
			var got []string
			for _, c := range claimants {
				if v, ok := verdicts[c.Key]; ok {
					got = append(got, c.Key.Name+" "+[]string{"admit", "wait", "reject"}[v.Answer])
					if v.Answer != Admit && (v.Message == "" || v.Reason == "") {
						t.Errorf("%s is told %+v", c.Key, v)
					}
				}
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func claimant(text string) Claimant {
	words := strings.Fields(text)
	c := Claimant{Key: types.NamespacedName{Namespace: "default", Name: words[0]}}
	if words[2] != "-" {
		c.Holds = []*manifest.Pod{withPort(words[2])}
	}
	if words[4] != "-" {
		c.Wants = withPort(words[4])
		c.Wants.UID = types.UID(words[0])
	}
	for i, word := range words {
		switch word {
		case "present":
			c.Present = true
		case "rests":
			c.Rests = true
		case "yields":
			c.Yields = true
		case "uid":
			c.Wants.UID = types.UID(words[i+1])
		case "has":
			c.UIDs = []types.UID{types.UID(words[i+1])}
		}
	}
	return c
}

func withPort(n string) *manifest.Pod {
	p := &manifest.Pod{Spec: &v1.Pod{}, Origin: manifest.Origin{Path: "a.yaml", Line: 1}}
	port := v1.ContainerPort{Protocol: v1.ProtocolTCP}
	if _, err := fmt.Sscan(n, &port.HostPort); err != nil {
		panic(err)
	}
	port.ContainerPort = port.HostPort
	p.Spec.Spec.Containers = []v1.Container{{Name: "app", Ports: []v1.ContainerPort{port}}}
	return p
}
