#!/usr/bin/env bash
# Tries AVX512-FP16 where no processor has it: boots Linux in Bochs and runs validate_cpu_x86_64 there.
#
#   experiments/cpu/in_bochs.sh build/bin/validate_cpu_x86_64 bochs.txt --rows "ph zmm" --quick
#   build/bin/validate_cpu --from bochs.txt --out results/bochs
#
# The second word is the file that gets what was found. Options of the program follow, whose exit code is this one's, too.
# Bochs 3.0 takes 14 s to boot, and some 2 microseconds for each input of each row. It is in Debian 13; the packages are
#   apt-get install bochs bochs-term bochsbios vgabios linux-image-cloud-amd64 grub-pc-bin xorriso mtools busybox-static cpio
set -euo pipefail

fail() { echo "in_bochs.sh: $*" >&2; exit 2; }

[ $# -ge 2 ] || fail "usage: in_bochs.sh PROGRAM RESULT_FILE [options of the program]"
program=$1 result=$2
shift 2
for tool in bochs grub-mkrescue xorriso mformat busybox cpio script; do
  command -v $tool >/dev/null || fail "$tool is not installed; the head of this file names the packages"
done
[ -x "$program" ] || fail "program '$program' is not there; 'ninja -C build validate_cpu_x86_64' builds it"
kernel=
for each in /boot/vmlinuz-*; do kernel=$each; done  # the last is the newest, mostly
[ -r "$kernel" ] || fail "there is no readable Linux kernel /boot/vmlinuz-*"
version=$(bochs --help 2>&1 | sed -n 's/.*Bochs x86 Emulator \([0-9.]*\).*/\1/p' | head -n 1)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/tree/bin" "$folder/tree/dev" "$folder/image/boot/grub"
cp "$program" "$folder/tree/program"
cp "$(command -v busybox)" "$folder/tree/bin/"
printf -v arguments ' %q' --emulated-by "Bochs $version" --threads 1 --out /dev/ttyS1 "$@"
cat >"$folder/tree/init" <<END
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox stty -F /dev/ttyS1 raw 115200
{ /program$arguments; echo "exit \$?"; } >/dev/ttyS0 2>&1
/bin/busybox sleep 2  # what the serial lines have not sent when the machine stops is lost
/bin/busybox reboot -f
END
chmod +x "$folder/tree/init"
(cd "$folder/tree" && find . | cpio --quiet -o -H newc | gzip) >"$folder/image/boot/initrd"
cp "$kernel" "$folder/image/boot/linux"
# Linux 6.12 would switch on AMX, and power management, by ways that Bochs 3.0 lacks.
cat >"$folder/image/boot/grub/grub.cfg" <<'END'
set timeout=0
menuentry halflab {
  linux /boot/linux console=ttyS0,115200 quiet acpi=off clearcpuid=amx_tile mitigations=off tsc=reliable reboot=t
  initrd /boot/initrd
}
END
grub-mkrescue -o "$folder/image.iso" "$folder/image" >"$folder/grub.log" 2>&1 ||
  fail "grub-mkrescue: $(tail -n 1 "$folder/grub.log")"
cat >"$folder/bochsrc" <<END
display_library: term
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
megs: 256
cpu: model=sapphire_rapids, ips=100000000, reset_on_triple_fault=0, ignore_bad_msrs=1
clock: sync=none
ata0-master: type=cdrom, path=$folder/image.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$folder/console.txt
com2: enabled=1, mode=file, dev=$folder/result.txt
log: $folder/bochs.log
panic: action=fatal
END
# A machine that stops by a triple fault is an error to Bochs: the result says whether the run came to its end.
TERM=vt100 script -qec "bochs -q -f $folder/bochsrc" /dev/null >"$folder/screen.txt" 2>&1 </dev/null || true
[ ! -e "$folder/console.txt" ] || sed -n '/ rows on \|^Nothing of this\|^\/program: /,/ s with /p' "$folder/console.txt" | tr -d '\r' | sed '/^exit /,$d'
status=$(sed -n 's/^exit \([0-9]*\)\r*$/\1/p' "$folder/console.txt" 2>/dev/null || true)
[ "$status" != 2 ] || exit 2
if [ "$(tail -n 1 "$folder/result.txt" 2>/dev/null)" != end ]; then
  tail -n 3 "$folder/screen.txt" "$folder/console.txt" "$folder/bochs.log" >&2 || true
  fail "the run in Bochs did not come to its end; its last lines stand above"
fi
cp "$folder/result.txt" "$result"
exit "${status:-2}"
