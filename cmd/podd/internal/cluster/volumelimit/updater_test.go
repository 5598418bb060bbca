package volumelimit

import (
	"maps"
	"math"
	"testing"
	"time"

	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/volume/csi"
)

// TestUpdatePeriods checks which drivers require periodic updates.
func TestUpdatePeriods(t *testing.T) {
	withPeriod := func(seconds *int64) *storage.CSIDriver {
		return &storage.CSIDriver{Spec: storage.CSIDriverSpec{NodeAllocatableUpdatePeriodSeconds: seconds}}
	}
	for name, test := range map[string]struct {
		stored *storage.CSIDriver
		want   map[string]time.Duration
	}{
		"no CSIDriver":    {nil, map[string]time.Duration{}},
		"no period":       {withPeriod(nil), map[string]time.Duration{}},
		"invalid period":  {withPeriod(new(int64(0))), map[string]time.Duration{}},
		"shortest period": {withPeriod(new(int64(10))), map[string]time.Duration{"disk.example": 10 * time.Second}},
		"longest period":  {withPeriod(new(int64(math.MaxInt64))), map[string]time.Duration{"disk.example": math.MaxInt64 / time.Second * time.Second}},
	} {
		drivers := map[types.NamespacedName]*storage.CSIDriver{{Name: "other.example"}: withPeriod(new(int64(20)))}
		if test.stored != nil {
			drivers[types.NamespacedName{Name: "disk.example"}] = test.stored
		}
		if got := updatePeriods([]csi.Driver{{Name: "disk.example"}}, drivers); !maps.Equal(got, test.want) {
			t.Errorf("%s: got periods %v, want %v", name, got, test.want)
		}
	}
}
