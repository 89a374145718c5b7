package lab

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/testenv"
)

// freshMounts is set in the environment of a test that has its own mounts.
const freshMounts = "WEIR_TEST_FRESH_MOUNTS"

// On a machine without named namespaces, ip makes the folder of names a mount. A lab made
// before that must still be removable.
func TestOlderThanTheFirstName(t *testing.T) {
	testenv.NeedRoot(t)
	ip := testenv.NeedProgram(t, "ip")
	if os.Getenv(freshMounts) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), freshMounts+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("with fresh mounts: %v\n%s", err, out)
		}
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("fresh", "/run", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	l := up(t, Options{})
	for _, arg := range []string{"add", "delete"} {
		if out, err := exec.Command(ip, "netns", arg, "other").CombinedOutput(); err != nil {
			t.Fatalf("ip netns %s: %v: %s", arg, err, out)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
