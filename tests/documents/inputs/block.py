import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm = torch.nn.RMSNorm(width)
        self.gate, self.up = (torch.nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        h = self.norm(x)
        h = F.silu(self.gate(h)) * self.up(h)
        return x + self.down(h)


block = Block(2048, 5632).to("cuda", torch.bfloat16)
torch.compile(block)(torch.randn(512, 2048, device="cuda", dtype=torch.bfloat16))
