/* SPDX-License-Identifier: MIT */
/* test_match.c - the hardware that the system lists, read from a directory of the test. */
#define _GNU_SOURCE
#include "load/match.h"
#include "object/manifest.h"

#include "fixture.h" /* after those: cmocka has a macro fail */

#include <stdio.h>
#include <string.h>

static char root[4096]; /* stands for / */

static void put_device(const char *slot, const char *uevent)
{
    make_directory(lair("machine/sys/bus/pci/devices/%s", slot));
    write_file(lair("machine/sys/bus/pci/devices/%s/uevent", slot), uevent, strlen(uevent));
}

static void make_places(void)
{
    snprintf(root, sizeof root, "%s", lair("machine"));
    make_directory(root);
    make_directory(lair("machine/sys"));
    make_directory(lair("machine/sys/bus"));
    make_directory(lair("machine/sys/bus/pci"));
    make_directory(lair("machine/sys/bus/pci/devices"));
}

static void rules_hold_for_what_is_there(void **state)
{
    struct inventory inventory;
    (void)state;
    make_places();
    put_device("0000:00:00.0", "PCI_CLASS=60000\nPCI_ID=8086:0D57\n");
    put_device("0000:17:00.0", "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2335\n"
                               "PCI_SUBSYS_ID=10DE:18BE\nPCI_SLOT_NAME=0000:17:00.0\n");
    put_device("0000:18:00.0", "PCI_CLASS=30000\n"); /* no number: left out */
    put_device("0000:19:00.0", "PCI_ID=10DE\n");
    put_device("0000:1a:00.0", "");
    make_directory(lair("machine/sys/bus/pci/devices/no uevent"));
    assert_true(inventory_read(&inventory, root));
    assert_true(inventory.pci_known);
    assert_int_equal(inventory.pci_count, 2);
    const struct pci_device *card = &inventory.pci[inventory.pci[0].vendor != 0x10de];
    assert_string_equal(card->slot, "0000:17:00.0");
    assert_string_equal(card->driver, "nvidia");
    assert_int_equal(card->class_code, 0x30200);
    assert_int_equal(card->device, 0x2335);
    assert_true(inventory_holds(&inventory, root, "pci:10de:*"));
    assert_true(inventory_holds(&inventory, root, "pci:10DE:2335"));
    assert_true(inventory_holds(&inventory, root, "pci:*:0d57"));
    assert_false(inventory_holds(&inventory, root, "pci:10de:0d57"));
    assert_false(inventory_holds(&inventory, root, "pci:1002:*"));
    assert_true(inventory_holds(&inventory, root, "node:/sys/bus"));
    assert_false(inventory_holds(&inventory, root, "node:/dev/kfd"));
    assert_true(inventory_holds(&inventory, root, "later:thing"));
    inventory_free(&inventory);
}

/* In a container without /sys, PCI devices are unknown. */
static void what_is_not_listed_decides_nothing(void **state)
{
    struct inventory inventory;
    (void)state;
    assert_true(inventory_read(&inventory, lair("empty")));
    assert_false(inventory.pci_known);
    assert_true(inventory_holds(&inventory, lair("empty"), "pci:10de:*"));
    assert_false(inventory_holds(&inventory, lair("empty"), "node:/dev/nvidiactl"));
    inventory_free(&inventory);
}

static void long_lines_are_cut(void **state)
{
    struct inventory inventory;
    char uevent[8192];
    (void)state;
    memset(uevent, 'x', sizeof uevent);
    memcpy(uevent, "PCI_ID=10DE:0001\nDRIVER=", 24);
    write_file(lair("machine/sys/bus/pci/devices/0000:1a:00.0/uevent"), uevent,
               sizeof uevent);
    assert_true(inventory_read(&inventory, root));
    assert_int_equal(inventory.pci_count, 3);
    for (size_t i = 0; i < inventory.pci_count; i++)
        assert_true(strlen(inventory.pci[i].driver) < sizeof inventory.pci[i].driver);
    assert_true(inventory_holds(&inventory, root, "pci:10de:0001"));
    inventory_free(&inventory);
}

static void rules_have_one_form(void **state)
{
    static const char *const bad[] = { "pci:",          "pci:10de",       "pci:10de:",
                                       "pci:10de:233",  "pci:10de:23355", "pci:10de:2335 ",
                                       "pci:x0de:2335", "pci:**:2335",    "usb:10de:2335" };
    int32_t vendor, device;
    (void)state;
    assert_true(manifest_pci_rule("pci:10de:*", &vendor, &device));
    assert_int_equal(vendor, 0x10de);
    assert_int_equal(device, -1);
    assert_true(manifest_pci_rule("pci:*:aBcD", &vendor, &device));
    assert_int_equal(vendor, -1);
    assert_int_equal(device, 0xabcd);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(manifest_pci_rule(bad[i], &vendor, &device));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_hold_for_what_is_there),
        cmocka_unit_test(what_is_not_listed_decides_nothing),
        cmocka_unit_test(long_lines_are_cut),
        cmocka_unit_test(rules_have_one_form),
    };
    return cmocka_run_group_tests(tests, lair_open, lair_close);
}
