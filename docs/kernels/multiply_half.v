// A product of halves as small hardware computes it: subnormal operands are zeros, what would be subnormal is zero, and
// digits that do not fit are cut off.
module multiply_half(input [15:0] a, input [15:0] b, output reg [15:0] y);
  wire sign = a[15] ^ b[15];
  wire a_zero = a[14:10] == 0, b_zero = b[14:10] == 0;
  wire a_special = &a[14:10], b_special = &b[14:10];
  wire a_infinite = a_special & ~|a[9:0], b_infinite = b_special & ~|b[9:0];
  wire a_nan = a_special & |a[9:0], b_nan = b_special & |b[9:0];
  wire [21:0] product = {11'b0, 1'b1, a[9:0]} * {11'b0, 1'b1, b[9:0]};
  wire signed [8:0] exponent = {4'b0, a[14:10]} + {4'b0, b[14:10]} - 9'd15 + {8'b0, product[21]};
  wire [9:0] fraction = product[21] ? product[20:11] : product[19:10];

  always @* begin
    if (a_nan | b_nan | (a_infinite & b_zero) | (a_zero & b_infinite)) y = 16'h7e00;
    else if (a_infinite | b_infinite) y = {sign, 15'h7c00};
    else if (a_zero | b_zero | (exponent <= 0)) y = {sign, 15'h0000};
    else if (exponent >= 31) y = {sign, 15'h7bff};
    else y = {sign, exponent[4:0], fraction};
  end
endmodule

// Computes on what `halflab inputs multiply --to a.hex,b.hex` wrote, and writes y.hex.
module testbench;
  parameter count = 65536;
  reg [15:0] a[0:count - 1], b[0:count - 1];
  reg [15:0] x, z;
  wire [15:0] y;
  integer i, file;

  multiply_half kernel(x, z, y);

  initial begin
    $readmemh("a.hex", a);
    $readmemh("b.hex", b);
    file = $fopen("y.hex", "w");
    for (i = 0; i < count; i = i + 1) begin
      x = a[i];
      z = b[i];
      #1 $fdisplay(file, "%h", y);
    end
    $fclose(file);
    $finish;
  end
endmodule
