package csi

// A StepError is the error of an operation on a volume, with the kubelet's names of the volume
// and the operation, for events.
type StepError struct {
	Volume string // name of the volume, as in the kubelet
	Step   string // name of the operation, as in the kubelet, such as "MountVolume.MountDevice"
	Err    error
}

func (e *StepError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// steps contains the names of a volume and of the operations on the volume, as in the kubelet.
type steps struct {
	volume string
	names  [3]string // for staging, publishing and expanding
}

// The indexes of operations in steps.names.
const staging, publishing, expanding = 0, 1, 2

// volumeSteps returns the names of v and of the operations on v.
func volumeSteps(v Volume) steps {
	if v.Block {
		return steps{v.specName(), [...]string{"MapVolume.SetUpDevice", "MapVolume.MapPodDevice", "MapVolume.NodeExpandVolume"}}
	}
	return steps{v.specName(), [...]string{"MountVolume.MountDevice", "MountVolume.SetUp", "MountVolume.NodeExpandVolume"}}
}

// wrap returns a *StepError for err, or nil if err is nil. step is the index of the failed
// operation, such as staging.
func (s steps) wrap(step int, err error) error {
	if err == nil {
		return nil
	}
	return &StepError{s.volume, s.names[step], err}
}
