package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/dynconfig"
)

// TestConfigCondition checks the condition of the Node and the problem for a configuration that is in use,
// on trial, or rejected.
func TestConfigCondition(t *testing.T) {
	active := dynconfig.Version{Digest: "0123456789abcdef"}
	for name, test := range map[string]struct {
		status          dynconfig.Status
		want            v1.ConditionStatus
		reason, message string
		wantProblem     bool
	}{
		"in use":     {dynconfig.Status{Active: active}, v1.ConditionTrue, "LastKnownGood", "podd uses the configuration in the files (sha256:0123456789ab)", false},
		"not stored": {dynconfig.Status{Active: active, Warning: "disk full"}, v1.ConditionTrue, "LastKnownGood", "podd uses the configuration in the files (sha256:0123456789ab)", true},
		"on trial":   {dynconfig.Status{Active: active, IsOnTrial: true}, v1.ConditionTrue, "OnTrial", "podd uses the configuration in the files (sha256:0123456789ab), which is on trial", false},
		"rejected": {dynconfig.Status{Active: active, Error: "x was rejected"}, v1.ConditionFalse, "ConfigNotUsed",
			"x was rejected; podd uses the last known good configuration", true},
		"rejected during a trial": {dynconfig.Status{Active: active, IsOnTrial: true, Error: "x was rejected"}, v1.ConditionFalse, "ConfigNotUsed",
			"x was rejected; podd uses the configuration on trial", true},
	} {
		t.Run(name, func(t *testing.T) {
			c, p := configCondition(test.status), configProblem(test.status)
			if c.Type != "KubeletConfigOk" || c.Status != test.want || c.Reason != test.reason || c.Message != test.message {
				t.Errorf("got condition %+v, want status %s, reason %s and message %q", c, test.want, test.reason, test.message)
			}
			if (p != nil) != test.wantProblem || test.status.Error != "" && p.Message != test.message {
				t.Errorf("got problem %v, want one: %t, with the message of the condition", p, test.wantProblem)
			}
		})
	}
}

// TestStopState checks that podd does not report to systemd that it stops if its parts start again in the
// same process.
func TestStopState(t *testing.T) {
	for name, test := range map[string]struct {
		err, cause error
		isDynamic  bool
		want       string
	}{
		"podd stops":                            {nil, context.Canceled, false, "STOPPING=1"},
		"podd fails":                            {errors.New("port in use"), nil, false, "STOPPING=1"},
		"the node is renamed":                   {&renamedError{"n2"}, nil, false, "RELOADING=1\nMONOTONIC_USEC="},
		"podd stops with dynamic configuration": {nil, context.Canceled, true, "STOPPING=1"},
		"the configuration changes":             {nil, dynconfig.ErrReload, true, "RELOADING=1\nMONOTONIC_USEC="},
		"the configuration fails":               {errors.New("port in use"), nil, true, "RELOADING=1\nMONOTONIC_USEC="},
	} {
		if got := stopState(mayContinue(test.err, test.cause, test.isDynamic)); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got state %q, want %q", name, got, test.want)
		}
	}
}
