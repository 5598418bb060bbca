package view

import v1 "k8s.io/api/core/v1"

// pressureMessages contain for each pressure condition the reason and message of the
// kubelet without and with pressure, and the reason of the event for a change.
var pressureMessages = map[v1.NodeConditionType][2][3]string{
	v1.NodeMemoryPressure: {
		{"KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"},
		{"KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory"},
	},
	v1.NodeDiskPressure: {
		{"KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"},
		{"KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"},
	},
	v1.NodePIDPressure: {
		{"KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"},
		{"KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"},
	},
}

// PressureKinds are the pressure conditions in the order of the kubelet.
var PressureKinds = []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure}

// PressureMessage returns the reason and the message of a pressure condition, and the
// reason of the event for a change to this state.
func PressureMessage(kind v1.NodeConditionType, exists bool) [3]string {
	if exists {
		return pressureMessages[kind][1]
	}
	return pressureMessages[kind][0]
}
